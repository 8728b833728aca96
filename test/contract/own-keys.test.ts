// Keys that every JavaScript object inherits something under (`constructor`, `valueOf`, `__proto__` ...) are names like any other in what
// users write: properties of schemas, arguments, tools, fields that no decoder knows. They arrive as they are, and break nothing.

import t from 'tap'
import { dialects } from '../../src/dialects/registry.js'
import type { DialectId } from '../../src/domain/conversation.js'
import type { JsonObject } from '../../src/domain/json.js'
import { vllm } from '../../src/upstreams/vllm.js'
import { answer, decode } from '../support/dialects.js'

const NAMES = ['constructor', 'valueOf', 'toString', 'hasOwnProperty', '__proto__']
const list = (value: string) => NAMES.map(name => `${JSON.stringify(name)}: ${value}`).join(', ')
/** Through the parser, as a body comes: `__proto__` in a literal of the language would be no key. */
const parsed = (text: string) => JSON.parse(text) as JsonObject

const SCHEMA = `{"type": "object", "properties": {${list('{"type": "string"}')}}, "required": ${JSON.stringify(NAMES)}}`
const ARGUMENTS = `{${list('"x"')}}`
const quoted = JSON.stringify(ARGUMENTS)

const BODIES: Readonly<Record<DialectId, string>> = {
  openai_chat: `{"tools": [{"type": "function", "function": {"name": "f", "parameters": ${SCHEMA}}}], "messages": [{"role": "user", "content": "u"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": ${quoted}}}]},
    {"role": "tool", "tool_call_id": "a", "content": "r"}], "response_format": {"type": "json_schema", "json_schema": {"name": "r", "schema": ${SCHEMA}}}}`,
  openai_responses: `{"tools": [{"type": "function", "name": "f", "parameters": ${SCHEMA}}], "input": [{"role": "user", "content": "u"},
    {"type": "function_call", "call_id": "a", "name": "f", "arguments": ${quoted}}, {"type": "function_call_output", "call_id": "a", "output": "r"}],
    "text": {"format": {"type": "json_schema", "name": "r", "schema": ${SCHEMA}}}}`,
  anthropic_messages: `{"tools": [{"name": "f", "input_schema": ${SCHEMA}}], "messages": [{"role": "user", "content": "u"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": ${ARGUMENTS}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]}],
    "output_config": {"format": {"type": "json_schema", "schema": ${SCHEMA}}}}`,
  google_generate: `{"tools": [{"functionDeclarations": [{"name": "f", "parameters": ${SCHEMA}}]}], "contents": [{"role": "user", "parts": [{"text": "u"}]},
    {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "f", "args": ${ARGUMENTS}}}]},
    {"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "f", "response": {"output": "r"}}}]}],
    "generationConfig": {"responseMimeType": "application/json", "responseSchema": ${SCHEMA}}}`,
}

const sampling = {
  temperature: 1,
  topP: 1,
  topK: -1,
  minP: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
  maxTokens: 1,
  seed: null,
}

for (const id of Object.keys(BODIES) as DialectId[]) {
  t.test(`${id}: schemas and arguments reach the engine with all their keys`, async t => {
    const request = decode(id, parsed(BODIES[id]))
    t.strictSame(request.losses, [])
    const { body } = vllm.buildRequest(request, { model: 'served', sampling, stop: [], affinityKey: 's' })
    const sent = JSON.parse(JSON.stringify(body))
    // As text: a comparison of objects would not see `__proto__`.
    const same = (got: unknown, wanted: string, what: string) =>
      t.equal(JSON.stringify(got), JSON.stringify(parsed(wanted)), what)
    same(sent.tools[0].function.parameters, SCHEMA, 'tool')
    same(sent.response_format.json_schema.schema, SCHEMA, 'format')
    same(parsed(sent.messages[1].tool_calls[0].function.arguments), ARGUMENTS, 'arguments')
  })

  t.test(`${id}: as a field that no decoder knows each is a loss, wherever it stands`, async t => {
    const body = parsed(BODIES[id])
    const holders = Object.entries(body).flatMap(([key, value]) => {
      const holder = Array.isArray(value) ? value[0] : value
      // Carried to the engine as a whole.
      return typeof holder === 'object' && key !== 'response_format' ? [key] : []
    })
    t.ok(holders.length >= 2)
    for (const name of NAMES) {
      const own = parsed(`{${JSON.stringify(name)}: {"x": 1}}`)
      t.match(decode(id, { ...body, ...own }).losses, [{ reason: 'not carried to the engine' }], name)
      for (const holder of holders) {
        const value = body[holder] as JsonObject | JsonObject[]
        const changed = Array.isArray(value) ? [{ ...value[0], ...own }, ...value.slice(1)] : { ...value, ...own }
        const { losses } = decode(id, { ...body, [holder]: changed })
        t.match(losses, [{ path: /[.]/ }], `${holder} ${name}`)
      }
    }
  })
}

t.test('a tool may have such a name', async t => {
  for (const name of NAMES) {
    const plain = [{ type: 'function', name, parameters: { type: 'object' } }]
    const custom = [{ type: 'custom', name }]
    for (const [tools, type] of [
      [plain, 'function_call'],
      [custom, 'custom_tool_call'],
    ] as const) {
      const request = decode('openai_responses', { input: 'u', tools, tool_choice: { type: 'function', name } })
      const response = answer({
        finish: 'tool_calls',
        toolCalls: [{ id: 'c', name, arguments: '{"input": "x"}' }],
      })
      const encoded = dialects.openai_responses.encodeResponse(response, request)
      t.match(encoded, { output: [{ type, name }] }, `${name} ${type}`)
    }
  }
})
