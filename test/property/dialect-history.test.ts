// A harness's history only grows. So the messages of each request must be a prefix of the messages of every later one, whatever stands
// between the turns; else no join of captured calls is exact.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { DialectId } from '../../src/domain/conversation.js'
import { decode, PNG } from '../support/dialects.js'

interface Turn {
  /** What comes before the model's turn: user texts and notices, in order. */
  readonly before: readonly { readonly kind: 'user' | 'notice'; readonly text: string }[]
  readonly reasoning: string
  readonly text: string
  readonly calls: readonly {
    readonly id: string
    readonly args: object
    readonly output: string
    readonly image: boolean
  }[]
}

const word = fc.stringMatching(/^[a-zé ]{1,8}$/)
const turn = fc.record({
  before: fc.array(fc.record({ kind: fc.constantFrom('user', 'notice'), text: word }), { maxLength: 3 }),
  reasoning: fc.oneof(fc.constant(''), word),
  text: fc.oneof(fc.constant(''), word),
  calls: fc.array(fc.record({ args: fc.dictionary(word, word), output: word, image: fc.boolean() }), { maxLength: 3 }),
})
const conversations = fc.array(turn, { minLength: 1, maxLength: 5 }).map(turns =>
  turns.map(
    (one, index): Turn => ({
      ...one,
      // A conversation begins with a user, and a turn without calls is followed by one.
      before:
        index === 0 || turns[index - 1]?.calls.length === 0
          ? [{ kind: 'user', text: 'go' }, ...one.before]
          : one.before,
      text: one.text || (one.reasoning === '' && one.calls.length === 0 ? 'x' : ''),
      calls: one.calls.map((call, position) => ({ ...call, id: `c${index}${position}` })),
    }),
  ),
)

/** Items of one turn in each dialect: before, the model's, the results. */
interface Writer {
  readonly field: string
  before(turn: Turn): object[]
  model(turn: Turn): object[]
  results(turn: Turn): object[]
}
const dataUrl = `data:image/png;base64,${PNG}`

const WRITERS: Readonly<Record<DialectId, Writer>> = {
  anthropic_messages: {
    field: 'messages',
    before: ({ before }) =>
      before.map(({ kind, text }) => ({ role: kind === 'user' ? 'user' : 'system', content: text })),
    model: ({ reasoning, text, calls }) => [
      {
        role: 'assistant',
        content: [
          ...(reasoning ? [{ type: 'thinking', thinking: reasoning, signature: 's' }] : []),
          ...(text ? [{ type: 'text', text }] : []),
          ...calls.map(({ id, args }) => ({ type: 'tool_use', id, name: 'f', input: args })),
        ],
      },
    ],
    results: ({ calls }) =>
      calls.length === 0
        ? []
        : [
            {
              role: 'user',
              content: calls.map(({ id, output, image }) => ({
                type: 'tool_result',
                tool_use_id: id,
                content: [
                  { type: 'text', text: output },
                  ...(image ? [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }] : []),
                ],
              })),
            },
          ],
  },
  openai_chat: {
    field: 'messages',
    before: ({ before }) =>
      before.map(({ kind, text }) => ({ role: kind === 'user' ? 'user' : 'developer', content: text })),
    model: ({ reasoning, text, calls }) => [
      {
        role: 'assistant',
        content: text,
        reasoning_content: reasoning,
        tool_calls: calls.map(({ id, args }) => ({ id, function: { name: 'f', arguments: JSON.stringify(args) } })),
      },
    ],
    results: ({ calls }) =>
      calls.map(({ id, output, image }) => ({
        role: 'tool',
        tool_call_id: id,
        content: [
          { type: 'text', text: output },
          ...(image ? [{ type: 'image_url', image_url: { url: dataUrl } }] : []),
        ],
      })),
  },
  openai_responses: {
    field: 'input',
    before: ({ before }) =>
      before.map(({ kind, text }) => ({ role: kind === 'user' ? 'user' : 'developer', content: text })),
    model: ({ reasoning, text, calls }) => [
      ...(reasoning ? [{ type: 'reasoning', summary: [{ type: 'summary_text', text: reasoning }] }] : []),
      ...(text ? [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }] : []),
      ...calls.map(({ id, args }) => ({
        type: 'function_call',
        call_id: id,
        name: 'f',
        arguments: JSON.stringify(args),
      })),
    ],
    results: ({ calls }) =>
      calls.map(({ id, output, image }) => ({
        type: 'function_call_output',
        call_id: id,
        output: [{ type: 'input_text', text: output }, ...(image ? [{ type: 'input_image', image_url: dataUrl }] : [])],
      })),
  },
  google_generate: {
    field: 'contents',
    before: ({ before }) =>
      before.map(({ kind, text }) => ({ role: kind === 'user' ? 'user' : 'system', parts: [{ text }] })),
    model: ({ reasoning, text, calls }) => [
      {
        role: 'model',
        parts: [
          ...(reasoning ? [{ text: reasoning, thought: true }] : []),
          ...(text ? [{ text }] : []),
          ...calls.map(({ args }) => ({ functionCall: { name: 'f', args } })),
        ],
      },
    ],
    results: ({ calls }) =>
      calls.length === 0
        ? []
        : [
            {
              role: 'user',
              parts: calls.map(({ output, image }) => ({
                functionResponse: {
                  name: 'f',
                  response: { output },
                  ...(image && { parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }] }),
                },
              })),
            },
          ],
  },
}

for (const [id, writer] of Object.entries(WRITERS) as [DialectId, Writer][]) {
  t.test(`${id}: each request's messages are a prefix of the next request's`, async () => {
    fc.assert(
      fc.property(conversations, turns => {
        const items: object[] = []
        let last: readonly unknown[] = []
        for (const one of turns) {
          items.push(...writer.before(one))
          const { messages } = decode(id, { [writer.field]: items })
          assert.deepEqual(messages.slice(0, last.length), last)
          last = messages
          items.push(...writer.model(one), ...writer.results(one))
        }
        const final = decode(id, { [writer.field]: [...items, ...writer.before({ ...(turns[0] as Turn) })] }).messages
        assert.deepEqual(final.slice(0, last.length), last)
        const assistants = final.filter(({ role }) => role === 'assistant')
        assert.equal(assistants.length, turns.length, 'one assistant message per model turn')
        const results = final.filter(({ role }) => role === 'tool').length
        assert.equal(results, turns.flatMap(({ calls }) => calls).length, 'one tool message per call')
      }),
      { numRuns: 100 },
    )
  })
}
