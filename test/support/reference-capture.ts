// Captures in the reference system's layout, with faults whose extent is known: files as its gateway and its builder write them.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface CapturedCallSpec {
  readonly id: string
  readonly prompt: readonly number[] | null
  /** null = the answer was cut out of the file by the size limit; then `usage` tells its tokens. */
  readonly sampled: readonly number[] | null
  readonly usage?: number
  readonly finish?: string
  readonly shape?: 'vllm' | 'sglang'
  readonly messages?: readonly object[]
  readonly answer?: object
}

export interface TraceSpec {
  readonly prompt: readonly number[]
  readonly response: readonly number[]
  readonly mask: readonly number[]
}

export interface SessionCapture {
  readonly task: string
  readonly session: string
  readonly calls: readonly CapturedCallSpec[]
  /** null = no result file. */
  readonly traces: readonly TraceSpec[] | null
  readonly reward?: number
  readonly status?: string
  readonly builder?: string
}

export const logprobOf = (call: number, token: number): number => Math.fround(-0.1 - call / 8 - token / 64)

/** Writes the files of `captured` below `folder`. */
export function writeReferenceCapture(folder: string, captured: readonly SessionCapture[]): void {
  for (const {
    task,
    session,
    calls,
    traces,
    reward = 1,
    status = 'COMPLETED',
    builder = 'prefix_merging',
  } of captured) {
    const completions = join(folder, `task_${task}`, 'sessions', session, 'completions')
    mkdirSync(completions, { recursive: true })
    for (const [index, call] of calls.entries())
      writeFileSync(
        join(completions, `${String(index + 1).padStart(4, '0')}-${call.id}.json`),
        JSON.stringify(completionFile(task, session, call, index)),
      )
    if (traces === null) continue
    const result = {
      session_id: session,
      task_id: task,
      status,
      trajectory: {
        metadata: {
          builder,
          session_id: session,
          task_id: task,
          record_count: calls.length,
          trace_count: traces.length,
          task_metadata: { policy_version: 3 },
          agent_result: { status: 'completed', return_code: 0 },
          evaluation: { strategy: 'test_on_output', outcome_reward: reward },
        },
        traces: traces.map(trace => ({
          prompt_ids: trace.prompt,
          response_ids: trace.response,
          loss_mask: trace.mask,
          response_logprobs: null,
          prompt_messages: [],
          response_messages: [],
          tools: null,
          finish_reason: 'stop',
          reward,
          metadata: {},
        })),
      },
      timing: { e2e_ms: 1200 },
      node_id: 'node-a',
      error: null,
      metadata: { policy_version: 3 },
    }
    writeFileSync(join(folder, `task_${task}`, `ses_${session}.json`), JSON.stringify(result))
  }
}

export function completionFile(task: string, session: string, call: CapturedCallSpec, index: number): object {
  const { id, prompt, sampled, usage, finish = 'stop', shape = 'vllm', messages = [], answer } = call
  const message = answer ?? { role: 'assistant', content: `answer ${id}` }
  const choice = { index: 0, message, finish_reason: finish }
  const usageOf = { prompt_tokens: prompt?.length ?? 0, completion_tokens: usage ?? sampled?.length ?? 0 }
  const pairs = sampled?.map((token, i) => ({ token: 'x', token_id: token, logprob: logprobOf(index, i) }))
  const response =
    sampled === null
      ? { id: 'r', usage: usageOf }
      : shape === 'vllm'
        ? {
            id: 'r',
            prompt_token_ids: prompt,
            choices: [{ ...choice, token_ids: sampled, logprobs: { content: pairs } }],
            usage: usageOf,
          }
        : {
            id: 'r',
            choices: [
              {
                ...choice,
                prompt_token_ids: prompt,
                meta_info: { output_token_logprobs: sampled.map((token, i) => [logprobOf(index, i), token, 'x']) },
              },
            ],
            usage: usageOf,
          }
  return {
    completion_id: id,
    timestamp: new Date(Date.UTC(2026, 0, 1, 0, 0, index * 2)).toISOString(),
    session_id: session,
    task_id: task,
    api_type: 'openai_chat',
    model_requested: 'm',
    model_used: 'served',
    original_request: { messages },
    transformed_request: { messages },
    response,
    metadata: { session_id: session, inference_timings: { e2e_ms: 500 } },
    __written_at: '2026-01-01T00:00:00Z',
  }
}

const END = 99

/** One session per fault; the numbers that `test/unit/audit/audit.test.ts` expects follow from these lists. */
export const FAULTY: readonly SessionCapture[] = [
  {
    task: 't-1',
    session: 'clean',
    calls: [
      { id: 'a1', prompt: [1, 2, 3], sampled: [10, 11, END] },
      { id: 'a2', prompt: [1, 2, 3, 10, 11, END, 50], sampled: [20, END], shape: 'sglang' },
    ],
    traces: [{ prompt: [1, 2, 3], response: [10, 11, END, 50, 20, END], mask: [1, 1, 1, 0, 1, 1] }],
  },
  {
    // The thinking (70 71 72) is not replayed; the reference trains the later turns behind it.
    task: 't-1',
    session: 'stripped',
    calls: [
      { id: 'b1', prompt: [1, 2], sampled: [70, 71, 72, 10, END] },
      { id: 'b2', prompt: [1, 2, 10, END, 50], sampled: [70, 73, 72, 20, END] },
      { id: 'b3', prompt: [1, 2, 10, END, 50, 20, END, 51], sampled: [21, END] },
    ],
    traces: [
      {
        prompt: [1, 2],
        response: [70, 71, 72, 10, END, 50, 70, 73, 72, 20, END, 51, 21, END],
        mask: [1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1],
      },
    ],
  },
  {
    // 7 8 and 78 are the same text.
    task: 't-1',
    session: 'drift',
    calls: [
      { id: 'c1', prompt: [1, 2, 3], sampled: [7, 8, END] },
      { id: 'c2', prompt: [1, 2, 3, 78, END, 50, 51], sampled: [20, END] },
    ],
    traces: [{ prompt: [1, 2, 3], response: [7, 8, END, 50, 51, 20, END], mask: [1, 1, 1, 0, 0, 1, 1] }],
  },
  {
    // The second answer to the first prompt goes on; the reference keeps the abandoned one and drops the rest.
    task: 't-2',
    session: 'retry',
    calls: [
      { id: 'd1', prompt: [1, 2, 3], sampled: [10, END] },
      { id: 'd1b', prompt: [1, 2, 3], sampled: [11, END] },
      { id: 'd2', prompt: [1, 2, 3, 11, END, 50], sampled: [20, END] },
      { id: 'd3', prompt: [1, 2, 3, 11, END, 50, 20, END, 51], sampled: [21, END] },
    ],
    traces: [{ prompt: [1, 2, 3], response: [10, END], mask: [1, 1] }],
    reward: 0.5,
  },
  {
    // The shared turn is trained in both branches of the export; the third branch is not exported.
    task: 't-2',
    session: 'branches',
    calls: [
      { id: 'e1', prompt: [1, 2, 3], sampled: [10, 11, END] },
      { id: 'e2', prompt: [1, 2, 3, 10, 11, END, 50], sampled: [20, 21, END] },
      { id: 'e3', prompt: [1, 2, 3, 10, 11, END, 60], sampled: [30, END] },
      { id: 'e4', prompt: [1, 2, 3, 10, 11, END, 65], sampled: [35, END] },
    ],
    traces: [
      { prompt: [1, 2, 3], response: [10, 11, END, 50, 20, 21, END], mask: [1, 1, 1, 0, 1, 1, 1] },
      { prompt: [1, 2, 3], response: [10, 11, END, 60, 30, END], mask: [1, 1, 1, 0, 1, 1] },
    ],
  },
  {
    // f2 has no prompt ids, f4 lost its answer to the size limit; the export trains f2 behind nothing and an id nobody sampled.
    task: 't-2',
    session: 'no-ids',
    calls: [
      { id: 'f1', prompt: [1, 2, 3], sampled: [10, END] },
      { id: 'f2', prompt: null, sampled: [20, END] },
      { id: 'f3', prompt: [1, 2, 3, 10, END, 50, 20, END, 51], sampled: [21, END] },
      { id: 'f4', prompt: [1, 2, 3, 77], sampled: null, usage: 7 },
    ],
    traces: [
      { prompt: [1, 2, 3], response: [10, END, 50, 20, END, 51, 21, END], mask: [1, 1, 0, 0, 0, 0, 1, 1] },
      { prompt: [], response: [20, END, 88], mask: [1, 1, 1] },
    ],
  },
  {
    task: 't-3',
    session: 'no-result',
    calls: [{ id: 'g1', prompt: [1, 2], sampled: [12, END], finish: 'tool_calls' }],
    traces: null,
  },
]
