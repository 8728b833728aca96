// What every dialect in the registry must hold: error bodies for any status, no crash on any body, counts and model lists in its own shape.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { dialects } from '../../src/dialects/registry.js'
import type { DialectId } from '../../src/domain/conversation.js'
import { RolloutError } from '../../src/domain/errors.js'
import { decode, PNG } from '../support/dialects.js'

t.test('error bodies are those of the case book', async t => {
  const body = (id: DialectId, status: number, code?: string) => dialects[id].errorBody(status, 'M', code)
  const openai = (type: string, code: string | null) => ({ error: { message: 'M', type, param: null, code } })
  const table: [status: number, anthropic: string, openai: [string, string | null], google: string][] = [
    [400, 'invalid_request_error', ['invalid_request_error', null], 'INVALID_ARGUMENT'],
    [401, 'authentication_error', ['invalid_request_error', 'invalid_api_key'], 'UNAUTHENTICATED'],
    [403, 'permission_error', ['permission_error', 'permission_denied'], 'PERMISSION_DENIED'],
    [404, 'not_found_error', ['invalid_request_error', 'not_found'], 'NOT_FOUND'],
    [413, 'request_too_large', ['invalid_request_error', 'request_too_large'], 'INVALID_ARGUMENT'],
    [415, 'invalid_request_error', ['invalid_request_error', 'unsupported_encoding'], 'INVALID_ARGUMENT'],
    [418, 'invalid_request_error', ['invalid_request_error', null], 'INVALID_ARGUMENT'],
    [429, 'rate_limit_error', ['rate_limit_error', 'rate_limit_exceeded'], 'RESOURCE_EXHAUSTED'],
    [500, 'api_error', ['server_error', 'server_error'], 'INTERNAL'],
    [502, 'api_error', ['server_error', 'upstream_error'], 'UNAVAILABLE'],
    [503, 'overloaded_error', ['server_error', 'service_unavailable'], 'UNAVAILABLE'],
    [504, 'timeout_error', ['server_error', 'timeout'], 'DEADLINE_EXCEEDED'],
    [529, 'overloaded_error', ['server_error', 'overloaded'], 'UNAVAILABLE'],
    [599, 'api_error', ['server_error', 'server_error'], 'INTERNAL'],
  ]
  for (const [status, anthropic, [type, code], google] of table) {
    t.strictSame(body('anthropic_messages', status), { type: 'error', error: { type: anthropic, message: 'M' } })
    t.strictSame(body('openai_chat', status), openai(type, code))
    t.strictSame(body('openai_responses', status), openai(type, code))
    t.strictSame(body('google_generate', status), { error: { code: status, message: 'M', status: google } })
  }
  t.strictSame(
    body('openai_chat', 403, 'inactive_session_credential'),
    openai('permission_error', 'inactive_session_credential'),
  )
  t.strictSame(body('openai_chat', 401, 'anything'), openai('invalid_request_error', 'invalid_api_key'))
})

t.test("counts, models and over-long prompts have the API's own form", async t => {
  const names = ['a', 'b']
  t.strictSame(dialects.anthropic_messages.countResponse(3), { input_tokens: 3 })
  t.strictSame(dialects.openai_chat.countResponse(3), { count: 3 })
  t.match(dialects.anthropic_messages.modelsResponse(names, null), {
    data: [{ id: 'a', type: 'model' }, { id: 'b' }],
    first_id: 'a',
    last_id: 'b',
    has_more: false,
  })
  t.match(dialects.openai_chat.modelsResponse(names, null), {
    object: 'list',
    data: [{ id: 'a', object: 'model' }, { id: 'b' }],
  })
  t.match(dialects.google_generate.modelsResponse(names, null), {
    models: [{ name: 'models/a' }, { name: 'models/b' }],
  })
  t.match(dialects.anthropic_messages.modelsResponse(names, 'b'), { id: 'b', type: 'model' })
  t.match(dialects.openai_chat.modelsResponse(names, 'b'), { id: 'b', object: 'model' })
  t.match(dialects.google_generate.modelsResponse(names, 'b'), { name: 'models/b' })
  t.equal(
    dialects.openai_responses.contextLengthMessage(250, 200),
    "This model's maximum context length is 200 tokens. However, your messages resulted in 250 tokens. Please reduce the length of the messages.",
  )
  t.equal(
    dialects.google_generate.contextLengthMessage(250, 200),
    'The input token count (250) exceeds the maximum number of tokens allowed (200).',
  )
})

/** Bodies that use most of what a dialect reads. */
const BODIES: Readonly<Record<DialectId, object>> = {
  anthropic_messages: {
    system: [{ type: 'text', text: 'A' }],
    thinking: { type: 'enabled', budget_tokens: 3 },
    output_config: { effort: 'low', format: { type: 'json_schema', schema: {} } },
    tools: [
      { name: 'f', description: 'd', input_schema: {}, defer_loading: true },
      { type: 'web_search_1', name: 'w' },
    ],
    tool_choice: { type: 'tool', name: 'f' },
    stop_sequences: ['x'],
    messages: [
      { role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 't' },
          { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'a', is_error: true, content: [{ type: 'text', text: 'x' }] }],
      },
      { role: 'system', content: 'notice' },
    ],
  },
  openai_chat: {
    temperature: 1,
    stop: ['x'],
    stream_options: { include_usage: true },
    chat_template_kwargs: { enable_thinking: true },
    tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters: {} } }],
    tool_choice: { type: 'function', function: { name: 'f' } },
    response_format: { type: 'json_object' },
    messages: [
      { role: 'developer', content: 'A' },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://x/y.png', detail: 'low' } }] },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'r',
        tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'x' }] },
    ],
  },
  openai_responses: {
    instructions: 'I',
    include: ['reasoning.encrypted_content'],
    reasoning: { effort: 'low', summary: 'auto' },
    text: { verbosity: 'low', format: { type: 'json_schema', name: 'r', schema: {} } },
    tools: [
      { type: 'custom', name: 'p', format: { definition: 'g', syntax: 'lark' } },
      { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f', parameters: {} }] },
      { type: 'local_shell' },
    ],
    tool_choice: { type: 'function', name: 'f' },
    input: [
      { role: 'user', content: [{ type: 'input_image', image_url: 'http://x/y.png' }] },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 't' }], encrypted_content: 'x' },
      { type: 'function_call', call_id: 'a', name: 'f', namespace: 'n', arguments: '{}' },
      { type: 'function_call_output', call_id: 'a', output: [{ type: 'input_text', text: 'x' }] },
      { type: 'local_shell_call', call_id: 'b', action: { type: 'exec', command: ['ls'] } },
      { type: 'local_shell_call_output', call_id: 'b', output: 'x' },
      { type: 'additional_tools', tools: [{ type: 'function', name: 'g' }] },
      { type: 'agent_message', author: 'x', content: [{ type: 'input_text', text: 'x' }] },
    ],
  },
  google_generate: {
    systemInstruction: { parts: [{ text: 'S' }] },
    generationConfig: {
      topK: 1,
      stopSequences: ['x'],
      thinkingConfig: { thinkingBudget: 1, thinkingLevel: 'LOW' },
      responseMimeType: 'application/json',
      responseSchema: { type: 'OBJECT' },
    },
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } },
    tools: [{ functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT', properties: {} } }] }],
    contents: [
      {
        role: 'user',
        parts: [
          { text: 'x' },
          { inlineData: { mimeType: 'image/png', data: PNG } },
          { fileData: { mimeType: 'image/png', fileUri: 'http://x/y' } },
        ],
      },
      {
        role: 'model',
        parts: [
          { text: 't', thought: true },
          { functionCall: { name: 'f', args: { x: 1 } }, thoughtSignature: 'x' },
        ],
      },
      {
        role: 'user',
        parts: [
          {
            functionResponse: {
              id: 'a',
              name: 'f',
              response: { output: 'x' },
              parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }],
            },
          },
        ],
      },
    ],
  },
}

/** `{[name]: {}}` as JSON.parse makes it: also `__proto__` is a key like others. */
const ownKey = (name: string): unknown => JSON.parse(`{${JSON.stringify(name)}:{}}`)

/** All paths of `value`, as lists of keys. */
const pathsOf = (value: unknown, path: readonly (string | number)[] = []): (string | number)[][] =>
  typeof value !== 'object' || value === null
    ? [[...path]]
    : [
        [...path],
        ...Object.entries(value).flatMap(([key, inner]) =>
          pathsOf(inner, [...path, Array.isArray(value) ? Number(key) : key]),
        ),
      ]

/** A copy of `value` with another value at `path`. */
function replaced(value: unknown, path: readonly (string | number)[], other: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return other
  const copy: Record<string | number, unknown> = Array.isArray(value) ? ([...value] as never) : { ...(value as object) }
  copy[key] = replaced(copy[key], rest, other)
  return copy
}

for (const id of Object.keys(BODIES) as DialectId[]) {
  t.test(
    `${id}: a full body is read, and whatever one field becomes, the answer is a request or a typed refusal (A-76)`,
    async t => {
      t.ok(decode(id, BODIES[id]).messages.length > 2)
      const paths = pathsOf(BODIES[id]).filter(path => path.length > 0)
      const oddities = fc.oneof(
        fc.constantFrom(null, 0, -1, '', true, [], {}, [null], [[]], { type: null }),
        // Names that every object inherits something under.
        fc.constantFrom('valueOf', 'toString', 'constructor', 'hasOwnProperty', '__proto__').map(ownKey),
        fc.jsonValue(),
      )
      fc.assert(
        fc.property(fc.constantFrom(...paths), oddities, (path, value) => {
          try {
            decode(id, replaced(BODIES[id], path, value))
          } catch (cause) {
            assert.ok(cause instanceof RolloutError, `${path.join('.')}: ${String(cause)}`)
            assert.equal(cause.code, 'DIALECT_INVALID_REQUEST')
            assert.match(cause.message, /^[A-Za-z_][\w.[\]]*: /)
          }
        }),
        { numRuns: 1500 },
      )
      for (const path of paths) {
        const absent = replaced(BODIES[id], path, null)
        try {
          decode(id, absent)
        } catch (cause) {
          t.equal((cause as RolloutError).code, 'DIALECT_INVALID_REQUEST', `null at ${path.join('.')}`)
        }
      }
    },
  )
}
