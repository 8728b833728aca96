// Case book, group gemini, over real HTTP.

import t from 'tap'
import { bytes, type Case, caseWorld, runCases } from '../../support/cases.js'
import { PNG } from '../../support/dialects.js'

const dialect = 'google_generate'
const turns = (...list: readonly (readonly [role: string, ...parts: object[]])[]) => ({
  contents: list.map(([role, ...parts]) => ({ role, parts })),
})
const hi = turns(['user', { text: 'hi' }])
const png = { inlineData: { mimeType: 'image/png', data: PNG } }
const url = `data:image/png;base64,${PNG}`
const responded = (name: string, rest: object = {}) => ({ functionResponse: { name, response: { ok: true }, ...rest } })

const cases: Case[] = [
  {
    name: 'gemini-1: a call without an id and its response have one and the same',
    dialect,
    body: turns(
      ['user', { text: 'go' }],
      ['model', { functionCall: { name: 'f', args: { x: 1 } } }],
      ['user', responded('f')],
    ),
    check(t, { engine }) {
      const id = engine['messages']?.[1]?.['tool_calls']?.[0]?.['id']
      t.match(id, /./)
      t.match(engine['messages']?.[2], { role: 'tool', tool_call_id: id, content: '{"ok": true}' })
    },
  },
  {
    name: 'gemini-2: the last chunk has the finish reason and the usage',
    dialect,
    body: hi,
    engine: { pieces: ['Hel', 'lo'], ids: [10, 11, 99] },
    check(t, { stream, answer, events }) {
      t.match(answer['candidates']?.[0]?.['content']?.['parts']?.[0], { text: 'Hello' })
      const last = stream ? events.at(-1) : answer
      t.match(last, {
        candidates: [{ finishReason: 'STOP' }],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 3, totalTokenCount: 6 },
      })
    },
  },
  {
    name: 'gemini-3: thoughts alone get one visible text, which no record has',
    dialect,
    body: hi,
    engine: { reasoning: 'hm', pieces: [], ids: [10, 99] },
    check(t, { answer, record }) {
      const parts = answer['candidates']?.[0]?.['content']?.['parts']
      t.match(parts, [
        { text: 'hm', thought: true },
        { text: '(no visible answer)', thought: undefined },
      ])
      t.equal(answer['candidates']?.[0]?.['finishReason'], 'STOP')
      t.notMatch(JSON.stringify(record.response), /no visible/)
      t.match(record, { engineFinish: 'stop' })
      t.strictSame([...(record.sampledIds ?? [])], [10, 99])
    },
  },
  {
    name: 'gemini-4: schemas in both forms, types in lower case',
    dialect,
    body: {
      ...hi,
      tools: [
        {
          functionDeclarations: [
            {
              name: 'f',
              description: 'd',
              parametersJsonSchema: { type: 'object', properties: { x: { type: 'string' } } },
            },
            { name: 'g', parameters: { type: 'OBJECT', properties: { y: { type: 'STRING' } } } },
          ],
        },
      ],
    },
    check(t, { engine }) {
      t.match(engine['tools'], [
        { function: { name: 'f', parameters: { type: 'object', properties: { x: { type: 'string' } } } } },
        { function: { name: 'g', parameters: { type: 'object', properties: { y: { type: 'string' } } } } },
      ])
    },
  },
  {
    name: 'gemini-5: a foreign signature never reaches the engine',
    dialect,
    body: turns(
      ['user', { text: 'go' }],
      ['model', { functionCall: { name: 'f', args: {} }, thoughtSignature: 'c2lnbmF0dXJl' }],
      ['user', responded('f')],
    ),
    check(t, { engine }) {
      t.notMatch(bytes(engine), /c2lnbmF0dXJl/)
      t.match(engine['messages']?.[1], { tool_calls: [{ function: { name: 'f', arguments: '{}' } }] })
    },
  },
  {
    name: 'gemini-6: images inline and in responses are kept once each',
    dialect,
    body: turns(
      ['user', { text: 'what?' }, png],
      ['model', { functionCall: { name: 'shot', args: {} } }],
      ['user', responded('shot', { parts: [png] })],
    ),
    check(t, { engine }) {
      t.equal(bytes(engine).split(PNG).length - 1, 2)
      t.match(engine['messages'], [
        { role: 'user', content: [{ text: 'what?' }, { type: 'image_url', image_url: { url } }] },
        {},
        { role: 'tool' },
        { role: 'user', content: [{ text: /shot/ }, { type: 'image_url', image_url: { url } }] },
      ])
    },
  },
]

t.test('one request each', t => runCases(t, cases))

t.test('gemini-1: the same body has the same ids again', async t => {
  const world = await caseWorld(t)
  const session = await world.pair.session('s-a')
  const body = turns(
    ['user', { text: 'go' }],
    ['model', { functionCall: { name: 'f' } }, { functionCall: { name: 'f' } }],
    ['user', responded('f'), responded('f')],
  )
  const first = (await world.call(session, { dialect, body }, false)).engine['messages']
  const second = (await world.call(session, { dialect, body }, true)).engine['messages']
  t.strictSame(second, first)
  const ids = (first as unknown as { tool_call_id?: string }[]).flatMap(message => message.tool_call_id ?? [])
  t.equal(new Set(ids).size, 2, 'each response has its own call')
})
