// Each preset knows its CLI's summary request, as that version writes it; what merely mentions it is the agent's work.

import t from 'tap'
import { sideRuleOf } from '../../../../actors/proxy/side-calls.js'
import type { CanonicalMessage, CanonicalRequest } from '../../../../src/domain/conversation.js'
import { harnesses } from '../../../../src/harnesses/registry.js'

const TOOLS = [{ name: 'bash', description: '', parameters: {} }]
const requestOf = (messages: readonly CanonicalMessage[], hasTools: boolean): CanonicalRequest => ({
  model: 'policy',
  messages,
  tools: hasTools ? TOOLS : [],
  dialect: 'openai_chat',
  sampling: {},
  stream: true,
  losses: [],
  echo: {},
})
const system = (content: string): CanonicalMessage => ({ role: 'system', content })
const user = (content: string): CanonicalMessage => ({ role: 'user', content })

const CLAUDE =
  'REMINDER: Do NOT call any tools. Respond with plain text only — an <analysis> block followed by a <summary> block. Tool calls will be rejected and you will fail the task.'
const QWEN =
  'Do not call tools; tool execution is disabled for this request. First, reason in your <analysis> block. Then, produce the <state_snapshot> XML.'

const SUMMARIES = {
  claude_code: { request: requestOf([system('You are a Claude agent'), user(CLAUDE)], true), headers: {} },
  codex: {
    request: requestOf([user('You are performing a CONTEXT CHECKPOINT COMPACTION.')], false),
    headers: { 'x-codex-turn-metadata': '{"window_number":0,"request_kind":"compaction","sandbox":"none"}' },
  },
  qwen_code: { request: requestOf([system('You are Qwen Code'), user(QWEN)], true), headers: {} },
  opencode: {
    request: requestOf([system('You are a context summarization agent. You are given'), user('Here')], false),
    headers: {},
  },
  pi: {
    request: requestOf([system('You are a context summarization assistant. Your task'), user('# Conv')], false),
    headers: {},
  },
} as const

for (const [id, { request, headers }] of Object.entries(SUMMARIES))
  t.test(`${id}: its request for a summary is a side call`, async t => {
    const { sideCalls } = harnesses[id as keyof typeof SUMMARIES]
    t.equal(sideRuleOf(request, headers, sideCalls, true), 'compaction')
    const later = requestOf(
      [
        ...request.messages,
        { role: 'assistant', content: null, toolCalls: [{ id: 'c', name: 'bash', arguments: '{}' }] },
        { role: 'tool', toolCallId: 'c', content: 'ok' },
      ],
      true,
    )
    t.equal(sideRuleOf(later, {}, sideCalls, true), null)
  })

t.test('the last message of a user is read whole, whatever its parts', async t => {
  const rules = [{ name: 'summary', lastUserIncludes: 'sum up' }]
  const parts: CanonicalMessage = {
    role: 'user',
    content: [
      { type: 'text', text: 'now' },
      { type: 'text', text: 'sum up' },
    ],
  }
  t.equal(sideRuleOf(requestOf([user('hi'), parts], true), {}, rules, true), 'summary')
  t.equal(sideRuleOf(requestOf([parts, user('hi')], true), {}, rules, true), null)
  t.equal(sideRuleOf(requestOf([], true), {}, rules, true), null)
})
