// How long a build takes and what it holds: one session of `turns` calls whose prompts share one history.
// node dist/scripts/perf/ledger.js [turns] [tokens]

import { prefixMerging } from '../../src/builders/prefix-merging.js'
import type { CompletionRecord } from '../../src/domain/completion.js'
import type { CompletionId, SessionId } from '../../src/domain/ids.js'

const END = 99

/** A session whose last prompt has about `tokens` ids. Prompts are copies unless `shared`: then they view one history. */
function session(turns: number, tokens: number, shared: boolean) {
  const perTurn = Math.floor(tokens / turns)
  const history = Int32Array.from({ length: perTurn * (turns + 1) }, (_, i) =>
    i % perTurn === 0 ? END : 1000 + ((i * 7919) % 50_000),
  )
  const calls = Array.from({ length: turns }, (_, turn) => {
    const start = perTurn * (turn + 1)
    const end = start + Math.floor(perTurn / 2)
    const cut = (from: number, to: number) => (shared ? history.subarray(from, to) : history.slice(from, to))
    const sampledIds = cut(start, end)
    const record: CompletionRecord = {
      completionId: `msg_${turn}` as CompletionId,
      sessionId: 's-perf' as SessionId,
      sequence: turn,
      attempt: 0,
      dialect: 'openai_chat',
      modelRequested: 'm',
      modelUsed: 'm',
      upstream: 'u',
      promptIds: cut(0, start),
      sampledIds,
      logprobs: new Float32Array(sampledIds.length).fill(-0.5),
      completionTokens: sampledIds.length,
      promptTokens: start,
      cachedTokens: 0,
      finish: 'stop',
      engineFinish: 'stop',
      notTrainable: null,
      sampling: {
        temperature: 1,
        topP: 1,
        topK: -1,
        minP: 0,
        presencePenalty: 0,
        frequencyPenalty: 0,
        maxTokens: null,
        seed: null,
      },
      generationPromptLength: 0,
      endTokenId: END,
      policyVersionStart: null,
      policyVersionEnd: null,
      replica: 'r',
      retryCount: 0,
      sideRule: null,
      agentId: null,
      startedAtMs: turn,
      finishedAtMs: turn,
      firstTokenAtMs: null,
      request: {},
      response: {},
      originalRequest: '',
      originalLike: null,
      losses: [],
      rulesApplied: [],
    }
    return { record, delivered: 'yes' as const }
  })
  return { sessionId: 's-perf' as SessionId, calls, failed: [] }
}

async function measure(turns: number, tokens: number, shared: boolean): Promise<void> {
  const ledger = session(turns, tokens, shared)
  const received = ledger.calls.reduce((sum, { record }) => sum + (record.promptIds?.length ?? 0), 0)
  const started = performance.now()
  const made = await prefixMerging.build(
    ledger,
    {},
    { decode: async () => null, sessionId: 's', taskId: 't', taskMetadata: {} },
  )
  const ms = performance.now() - started
  console.log(
    `${turns} turns, ${tokens} tokens, ${shared ? 'shared' : 'copied'} prompts: ${(received / 1e6).toFixed(1)} M ids received, ` +
      `${ms.toFixed(0)} ms (${((ms * 1e6) / received).toFixed(1)} ns/id), ${made.traces.length} trace, ` +
      `${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MiB resident`,
  )
}

const [turns = 1000, tokens = 200_000] = process.argv.slice(2).map(Number)
for (const part of [4, 2, 1])
  for (const shared of [true, false]) await measure(Math.floor(turns / part), Math.floor(tokens / part), shared)
