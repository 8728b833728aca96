// What a decoder makes of a tool loop, under Qwen3's real template: the next prompt must begin with this prompt and the answer, token for
// token (case reconstruction-9, S2 and S4; decisions.md, section 5). Every dialect is driven with its own answers echoed back, as its
// harnesses do.

import t from 'tap'
import { dialects } from '../../../src/dialects/registry.js'
import type { CanonicalRequest, CanonicalResponse, DialectId } from '../../../src/domain/conversation.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { loadTokenizer } from '../../../src/tokenizer/tokenizer.js'
import { upstreams } from '../../../src/upstreams/registry.js'
import { answer, decode } from '../../support/dialects.js'

const tokenizer = loadTokenizer('qwen3')

/** Ids of the prompt as vLLM makes them of the body our profile sends. */
function promptIds(request: CanonicalRequest): number[] {
  const sampling = {
    temperature: null,
    topP: null,
    topK: null,
    minP: null,
    presencePenalty: null,
    frequencyPenalty: null,
    maxTokens: null,
    seed: null,
  }
  const { body } = upstreams.vllm.buildRequest(request, { model: 'm', sampling, stop: [], affinityKey: 's' })
  const {
    messages,
    tools = [],
    chat_template_kwargs: kwargs = {},
  } = body as {
    messages: Record<string, unknown>[]
    tools?: Record<string, unknown>[]
    chat_template_kwargs?: Record<string, unknown>
  }
  return [...tokenizer.encode(tokenizer.renderChat({ messages, tools, addGenerationPrompt: true, kwargs }))]
}

/** Ids of an answer as the policy samples it, end token included. */
function sampledIds({ reasoning, content, toolCalls }: CanonicalResponse): number[] {
  const calls = toolCalls.map(
    call => `<tool_call>\n{"name": "${call.name}", "arguments": ${call.arguments}}\n</tool_call>`,
  )
  const body = [...(content ? [content] : []), ...calls].join('\n')
  return [...tokenizer.encode(`<think>\n${reasoning}\n</think>\n\n${body}<|im_end|>`)]
}

const RESPONSE = answer({
  reasoning: 'I should look first.',
  content: 'Let me look.',
  toolCalls: [{ id: 'call_a', name: 'ls', arguments: '{"path": ".", "söme": ["é", 1]}' }],
  finish: 'tool_calls',
})
const SCHEMA = { type: 'object', properties: { path: { type: 'string' } } }
const NOTICE = 'Token usage: 12000/200000; 188000 remaining'

interface Loop {
  readonly base: JsonObject
  /** The history's field, its first items, and what follows the answer: its echo, the result, a notice. */
  readonly field: string
  readonly first: readonly object[]
  next(body: JsonObject): readonly object[]
  readonly notice: object
}

const LOOPS: Readonly<Record<DialectId, Loop>> = {
  anthropic_messages: {
    base: { system: 'S', thinking: { type: 'adaptive' }, tools: [{ name: 'ls', input_schema: SCHEMA }] },
    field: 'messages',
    first: [
      { role: 'user', content: 'go' },
      { role: 'system', content: 'environment' },
    ],
    next: body => [
      { role: 'assistant', content: body['content'] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_a', content: 'a.py' }] },
    ],
    notice: { role: 'system', content: NOTICE },
  },
  openai_chat: {
    base: { tools: [{ type: 'function', function: { name: 'ls', parameters: SCHEMA } }] },
    field: 'messages',
    first: [
      { role: 'system', content: 'S' },
      { role: 'user', content: [{ type: 'text', text: 'go' }] },
    ],
    next: body => [
      (body['choices'] as { message: object }[])[0]?.message ?? {},
      { role: 'tool', tool_call_id: 'call_a', content: 'a.py' },
    ],
    notice: { role: 'developer', content: NOTICE },
  },
  openai_responses: {
    base: { tools: [{ type: 'function', name: 'ls', parameters: SCHEMA }], include: ['reasoning.encrypted_content'] },
    field: 'input',
    first: [
      { role: 'developer', content: 'S' },
      { role: 'user', content: 'environment' },
      { role: 'user', content: 'go' },
    ],
    next: body => [
      ...(body['output'] as object[]),
      { type: 'function_call_output', call_id: 'call_a', output: 'a.py' },
    ],
    notice: { role: 'developer', content: NOTICE },
  },
  google_generate: {
    base: {
      systemInstruction: { parts: [{ text: 'S' }] },
      tools: [{ functionDeclarations: [{ name: 'ls', parametersJsonSchema: SCHEMA }] }],
    },
    field: 'contents',
    first: [{ role: 'user', parts: [{ text: 'go' }] }],
    // Gemini CLI drops thought parts.
    next: body => {
      const [candidate] = body['candidates'] as { content: { parts: { thought?: boolean }[] } }[]
      return [
        { role: 'model', parts: candidate?.content.parts.filter(part => part.thought !== true) },
        { role: 'user', parts: [{ functionResponse: { id: 'call_a', name: 'ls', response: { output: 'a.py' } } }] },
      ]
    },
    notice: { role: 'system', parts: [{ text: NOTICE }] },
  },
}

for (const [id, loop] of Object.entries(LOOPS) as [DialectId, Loop][]) {
  t.test(`${id}: a tool loop joins exactly, also with a notice after the result (reconstruction-9)`, async t => {
    const request = (items: readonly object[]) => decode(id, { ...loop.base, [loop.field]: items })
    const first = request(loop.first)
    const echoed = loop.next(dialects[id].encodeResponse(RESPONSE, first))
    const wanted = [...promptIds(first), ...sampledIds(RESPONSE)]
    for (const tail of [[], [loop.notice]]) {
      const ids = promptIds(request([...loop.first, ...echoed, ...tail]))
      t.strictSame(ids.slice(0, wanted.length), wanted)
      t.match(tokenizer.decode(ids.slice(wanted.length)), tail.length > 0 ? `a.py\n\n${NOTICE}` : 'a.py')
    }
  })
}
