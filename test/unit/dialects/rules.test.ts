// The decoders' rules: each can be seen at work, is named then, and does what the table says when it is off.

import t from 'tap'
import { detect } from '../../../src/dialects/detect.js'
import { dialects } from '../../../src/dialects/registry.js'
import { RULES, type Rule } from '../../../src/dialects/shared/rules.js'
import type { CanonicalRequest, DialectId } from '../../../src/domain/conversation.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { PROMPT_RULES } from '../../../src/domain/rules.js'
import { answer, head, PATHS, PNG } from '../../support/dialects.js'

function decode(id: DialectId, body: JsonObject, off: readonly string[]): CanonicalRequest {
  const request = head('POST', PATHS[id])
  const found = detect(request)
  if (found === null) throw new Error('no route')
  return dialects[id].decodeRequest({ model: 'm', ...body }, found.route, request, new Set(off))
}

const call = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
}
const result = { role: 'tool', tool_call_id: 'a', content: 'done' }
const use = { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] }
const user = (...content: JsonObject[]) => ({ role: 'user', content })
const text = (words: string) => ({ type: 'text', text: words })
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }
/** What an answer of ours without thinking and text leaves in a Gemini history. */
const empty = dialects.google_generate.encodeResponse(
  answer({ content: '', reasoning: 'Hm.' }),
  decode('google_generate', { contents: [{ role: 'user', parts: [{ text: 'go' }] }] }, []),
)
const sealed = dialects.openai_responses.encodeResponse(
  answer({ content: 'x', reasoning: 'Hm.' }),
  decode('openai_responses', { input: 'go', include: ['reasoning.encrypted_content'] }, []),
)['output'] as JsonObject[]

interface Sample {
  readonly dialect: DialectId
  readonly body: JsonObject
  /** Part of the messages (as JSON) with the rule, and without it; null = refused. */
  readonly on: RegExp
  readonly off: RegExp | null
}

const SAMPLES: Readonly<Record<Rule, Sample>> = {
  billing_line_stripped: {
    dialect: 'anthropic_messages',
    body: { system: 'x-anthropic-billing-header: 1\nS', messages: [{ role: 'user', content: 'go' }] },
    on: /^\[\{"role":"system","content":"S"/,
    off: /billing/,
  },
  notice_folded_into_tool_result: {
    dialect: 'openai_chat',
    body: { messages: [{ role: 'user', content: 'go' }, call, result, { role: 'developer', content: 'note' }] },
    on: /"done\\n\\nnote"/,
    off: /\{"role":"user","content":"note"\}/,
  },
  notice_as_user_message: {
    dialect: 'openai_chat',
    body: {
      messages: [
        { role: 'user', content: 'go' },
        { role: 'system', content: 'note' },
      ],
    },
    on: /\{"role":"user","content":"note"\}/,
    off: /\{"role":"system","content":"note"\}/,
  },
  results_before_text: {
    dialect: 'anthropic_messages',
    body: { messages: [use, user(text('hi'), { type: 'tool_result', tool_use_id: 'a', content: 'done' })] },
    on: /done.*hi/,
    off: null,
  },
  tool_error_marked: {
    dialect: 'anthropic_messages',
    body: { messages: [use, user({ type: 'tool_result', tool_use_id: 'a', content: 'bad', is_error: true })] },
    on: /\[Tool Error\].*bad/,
    off: /"content":"bad"/,
  },
  result_images_moved: {
    dialect: 'anthropic_messages',
    body: { messages: [use, user({ type: 'tool_result', tool_use_id: 'a', content: [text('see'), image] })] },
    on: /"role":"user","content":\[\{"type":"text","text":"Image from tool call a/,
    off: /"role":"tool","toolCallId":"a","content":\[\{"type":"text","text":"see"\},\{"type":"image"/,
  },
  thinking_order_flattened: {
    dialect: 'anthropic_messages',
    body: {
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: [text('a'), { type: 'thinking', thinking: 'late', signature: 's' }] },
      ],
    },
    on: /"reasoning":"late"/,
    off: null,
  },
  reasoning_restored: {
    dialect: 'openai_responses',
    body: {
      input: [{ role: 'user', content: 'go' }, ...sealed.map(item => ({ ...item, summary: [], content: null }))],
    },
    on: /"reasoning":"Hm\."/,
    off: /^(?!.*reasoning)/,
  },
  visible_note_removed: {
    dialect: 'google_generate',
    body: {
      contents: [
        { role: 'user', parts: [{ text: 'go' }] },
        (empty['candidates'] as { content: JsonObject }[])[0]?.content ?? {},
      ],
    },
    on: /"role":"assistant","content":""/,
    off: /"role":"assistant","content":"[^"]+"/,
  },
  deferred_tools_inlined: {
    dialect: 'anthropic_messages',
    body: {
      tools: [{ name: 'later', input_schema: { type: 'object' }, defer_loading: true }],
      messages: [{ role: 'user', content: 'go' }],
    },
    on: /"tools":\[\]$/,
    off: /"tools":\[\{"name":"later"/,
  },
  content_omitted: {
    dialect: 'openai_chat',
    body: { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'x' } }] }] },
    on: /file/,
    off: null,
  },
}

for (const [rule, { dialect, body, on, off }] of Object.entries(SAMPLES)) {
  t.test(`${rule}: named when it is applied, switched off by the config`, async t => {
    const seen = ({ messages, tools }: CanonicalRequest) =>
      `${JSON.stringify(messages)} "tools":${JSON.stringify(tools)}`
    const applied = decode(dialect, body, [])
    t.ok(applied.rules?.includes(rule))
    t.match(seen(applied), on)
    if (off === null) {
      t.throws(() => decode(dialect, body, [rule]), { code: 'DIALECT_INVALID_REQUEST', details: { rule } })
      return
    }
    const left = decode(dialect, body, [rule])
    t.notOk(left.rules?.includes(rule))
    t.match(seen(left), off)
    t.notMatch(seen(left), on)
  })
}

t.test('every rule of the decoders stands in the one table', async t => {
  t.strictSame(
    Object.values(RULES).filter(rule => !(rule in PROMPT_RULES)),
    [],
  )
})
