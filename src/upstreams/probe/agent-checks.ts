// Does a server do for an agent what a harness needs: a tool call comes back structured, thinking in a key of its own, and an answer
// that is sent back extends prompt and sampled ids token for token?

import type { CanonicalMessage, ToolDefinition } from '../../domain/conversation.js'
import type { UpstreamAnswer, UpstreamErrorInfo } from '../base.js'
import { type Asker, inBrief, user } from './asking.js'
import { fault, note, ok, type ProbeFinding, warning } from './report.js'

const BASH: ToolDefinition = {
  name: 'bash',
  description: 'Runs a command in a shell and returns its output.',
  parameters: {
    type: 'object',
    properties: { command: { type: 'string', description: 'The command.' } },
    required: ['command'],
  },
}
const TASK = user('List the files of the current folder with the bash tool. Call the tool now.')
const RESULT = 'README.md\npackage.json'
const ATTEMPTS = 3
const LENGTH = 1_024
/** From this status on it is the answer that failed, which another one may not. */
const FAILS = 500
/** Tool calls as models write them, left in the text where no parser takes them out. */
const MARKUP = /<tool_call>|<\|tool_call|<function=|\[TOOL_CALLS\]|<\|python_tag\|>|"arguments"\s*:|"parameters"\s*:/
const THINK = /<\/?think>/
const TOOLS_CURE = 'vLLM: `--enable-auto-tool-choice --tool-call-parser hermes` (the parser of your model)'
const REASONING_CURE = 'vLLM and SGLang: `--reasoning-parser qwen3` (the parser of your model)'

export interface AgentProbed {
  readonly findings: readonly ProbeFinding[]
  readonly answers: readonly UpstreamAnswer[]
}

export async function probeAgent(ask: Asker): Promise<AgentProbed> {
  const answers: UpstreamAnswer[] = []
  let refusal: UpstreamErrorInfo | null = null
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const asked = await ask.generate({ messages: [TASK], tools: [BASH], sampling: { maxTokens: LENGTH } })
    if (!asked.ok) {
      refusal = asked.error
      if (refusal.status < FAILS) break
      continue
    }
    answers.push(asked.answer)
    if (asked.answer.toolCalls.length > 0) break
  }
  const calling = answers.find(({ toolCalls }) => toolCalls.length > 0)
  return {
    findings: [
      toolsFinding(answers, refusal),
      ...reasoningFinding(answers),
      ...(calling === undefined ? [] : [await joinFinding(ask, calling)]),
    ],
    answers,
  }
}

function toolsFinding(answers: readonly UpstreamAnswer[], refusal: UpstreamErrorInfo | null): ProbeFinding {
  if (refusal !== null && (refusal.status < FAILS || answers.length === 0)) {
    const said = `(${refusal.status}): ${inBrief(refusal.message)}`
    return refusal.status < FAILS
      ? fault('tool_calls', 'tools_refused', `a call with tools is refused ${said}`, TOOLS_CURE)
      : fault('tool_calls', 'tools_fail', `${ATTEMPTS} of ${ATTEMPTS} calls with tools fail ${said}`, TOOLS_CURE)
  }
  const call = answers.flatMap(({ toolCalls }) => toolCalls)[0]
  if (call !== undefined) return ok('tool_calls', `a tool call comes back structured (${call.name})`)
  if (answers.some(({ content, reasoning }) => MARKUP.test(`${content ?? ''}${reasoning ?? ''}`))) {
    return fault('tool_calls', 'no_tool_parser', 'a tool call is left in the text: no harness would run it', TOOLS_CURE)
  }
  const seen = `no tool call in ${answers.length} answers to a task that needs one`
  return warning('tool_calls', 'no_tool_call_seen', seen, `a model that calls tools; ${TOOLS_CURE}`)
}

function reasoningFinding(answers: readonly UpstreamAnswer[]): readonly ProbeFinding[] {
  if (answers.some(({ content }) => THINK.test(content ?? ''))) {
    const seen = 'thinking is left in the text, where harnesses show it and rewrite it'
    return [warning('reasoning', 'no_reasoning_parser', seen, REASONING_CURE)]
  }
  if (answers.some(({ reasoning }) => reasoning !== null && reasoning !== '')) {
    return [ok('reasoning', 'thinking comes in a key of its own')]
  }
  return answers.length === 0 ? [] : [note('reasoning', 'the model did not think')]
}

/** The answer sent back with its tool result: its prompt must begin with the prompt and the ids sampled before. */
async function joinFinding(ask: Asker, answer: UpstreamAnswer): Promise<ProbeFinding> {
  const cure =
    'joins that break make more and shorter traces; a template that repeats turns as they were written mends it'
  const calls = answer.toolCalls.map((call, index) => ({ ...call, id: call.id === '' ? `call_${index}` : call.id }))
  const messages: readonly CanonicalMessage[] = [
    TASK,
    {
      role: 'assistant',
      content: answer.content,
      ...(answer.reasoning !== null && { reasoning: answer.reasoning }),
      toolCalls: calls,
    },
    ...calls.map(({ id }): CanonicalMessage => ({ role: 'tool', toolCallId: id, content: RESULT })),
  ]
  const asked = await ask.generate({ messages, tools: [BASH], sampling: { maxTokens: 1 } })
  if (!asked.ok) {
    const seen = `the next turn is refused (${asked.error.status}): ${inBrief(asked.error.message)}`
    return fault('joins', 'next_turn_refused', seen, TOOLS_CURE)
  }
  const { promptIds, sampledIds } = answer
  const next = asked.answer.promptIds
  if (promptIds === null || sampledIds === null || next === null) {
    return note('joins', 'without ids there is nothing to join')
  }
  const before = Int32Array.of(...promptIds, ...sampledIds)
  const at = before.findIndex((id, index) => next[index] !== id)
  if (at === -1) return ok('joins', 'the next prompt extends prompt and answer token for token')
  if (at < promptIds.length) {
    const seen = `the next prompt leaves the first at token ${at} of ${promptIds.length}, before the answer begins`
    return warning('joins', 'join_generation_prompt', seen, cure)
  }
  const [wanted, got] = [await textAt(ask, before, at), await textAt(ask, next, at)]
  const kind = joinKind(wanted, got, await textAt(ask, before, at, before.length), answer)
  const seen =
    `the next prompt leaves the answer at token ${at - promptIds.length} of ${sampledIds.length} (${kind})` +
    (wanted === null || got === null ? '' : `: ${JSON.stringify(wanted)} became ${JSON.stringify(got)}`)
  return warning('joins', `join_${kind}`, seen, cure)
}

const WINDOW = 8

async function textAt(ask: Asker, ids: Int32Array, at: number, end = at + WINDOW): Promise<string | null> {
  const question = ask.profile.detokenizeRequest(ids.slice(at, end), ask.model)
  const body = question && (await ask.json('POST', question.path, question.body))
  try {
    return body === null ? null : ask.profile.readDetokenized(body)
  } catch {
    // A server that answers this route in a form of its own is one that cannot tell.
    return null
  }
}

/** `rest`: of the answer, from where the next prompt leaves it. */
function joinKind(
  wanted: string | null,
  got: string | null,
  rest: string | null,
  { reasoning }: UpstreamAnswer,
): string {
  if (wanted === null || got === null || rest === null) return 'unknown'
  const start = wanted.trim()
  if (start.startsWith('<think>') !== got.trim().startsWith('<think>')) return 'thinking_stripped'
  if (start !== '' && reasoning?.includes(start)) return 'thinking_stripped'
  const end = rest.indexOf('</tool_call>')
  const begin = rest.indexOf('<tool_call>')
  if (end !== -1 && (begin === -1 || begin > end)) return 'arguments_reserialised'
  const bare = (text: string) => text.replace(/\s+/g, '')
  const [one, other] = [bare(wanted), bare(got)]
  return one.startsWith(other) || other.startsWith(one) ? 'whitespace' : 'unknown'
}
