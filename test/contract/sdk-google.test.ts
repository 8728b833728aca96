// The official `@google/genai` SDK against the gateway: plain, streamed, function calls in several turns, thoughts, counts, models.

import type { Content, FunctionDeclaration } from '@google/genai'
import t from 'tap'
import { PNG } from '../support/dialects.js'
import { ADD_PARAMETERS, add, addingPolicy, sdkWorld } from '../support/sdk.js'

const declaration: FunctionDeclaration = { name: 'add', description: 'adds', parametersJsonSchema: ADD_PARAMETERS }
const tools = [{ functionDeclarations: [declaration] }]

t.test('a plain call gives text, finish reason and usage', async t => {
  const { google, pair, session } = await sdkWorld(t, [{ pieces: ['Hel', 'lo'] }])
  const answer = await google().models.generateContent({ model: 'm', contents: 'hi' })
  t.equal(answer.text, 'Hello')
  t.equal(answer.candidates?.[0]?.finishReason, 'STOP')
  t.match(answer.usageMetadata, { promptTokenCount: 3, candidatesTokenCount: 3, totalTokenCount: 6 })
  t.match(await pair.ledger(session), { calls: [{ delivered: 'yes', record: { notTrainable: null } }] })
})

t.test('generateContentStream gives the text piece by piece, then the calls', async t => {
  const { google } = await sdkWorld(t, addingPolicy)
  const config = { tools, thinkingConfig: { includeThoughts: true } }
  const stream = await google().models.generateContentStream({ model: 'm', contents: 'add', config })
  const texts: string[] = []
  const calls: unknown[] = []
  let thoughts = ''
  let finish: string | undefined
  for await (const chunk of stream) {
    for (const part of chunk.candidates?.[0]?.content?.parts ?? []) {
      if (part.functionCall) calls.push([part.functionCall.name, part.functionCall.args])
      else if (part.thought) thoughts += part.text ?? ''
      else if (part.text) texts.push(part.text)
    }
    finish = chunk.candidates?.[0]?.finishReason ?? finish
  }
  t.strictSame(texts, ['Adding', ' both.'])
  t.equal(thoughts, 'Two sums.')
  t.strictSame(calls, [
    ['add', { a: 1, b: 2 }],
    ['add', { a: 3, b: 4 }],
  ])
  t.equal(finish, 'STOP')
})

for (const stream of [false, true]) {
  t.test(`a ${stream ? 'streamed ' : ''}loop of parallel function calls`, async t => {
    const { google, asked, pair, session } = await sdkWorld(t, addingPolicy)
    const contents: Content[] = [{ role: 'user', parts: [{ text: 'add 1, 2, 3, 4' }] }]
    let text = ''
    for (let turn = 0; turn < 3; turn += 1) {
      const request = { model: 'm', contents: [...contents], config: { tools, systemInstruction: 'be exact' } }
      const parts: NonNullable<Content['parts']> = []
      if (stream) {
        for await (const chunk of await google().models.generateContentStream(request)) {
          parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []))
        }
      } else {
        const answer = await google().models.generateContent(request)
        parts.push(...(answer.candidates?.[0]?.content?.parts ?? []))
      }
      contents.push({ role: 'model', parts })
      text = parts.map(part => (part.thought ? '' : (part.text ?? ''))).join('')
      const results = parts.flatMap(({ functionCall }) => {
        if (functionCall === undefined) return []
        const output = String(add(functionCall.args as { a: number; b: number }))
        const { id, name } = functionCall
        return [{ functionResponse: { ...(id && { id }), ...(name && { name }), response: { output } } }]
      })
      if (results.length > 0) contents.push({ role: 'user', parts: results })
    }
    t.equal(text, 'The sum is 10.')
    t.match(asked(0)['messages'], [{ role: 'system', content: 'be exact' }, { role: 'user' }])
    const roles = (asked(2)['messages'] as { role: string }[]).map(({ role }) => role)
    t.strictSame(roles, ['system', 'user', 'assistant', 'tool', 'tool', 'assistant', 'tool'])
    t.match(JSON.stringify(asked(2)['messages']), '{\\"a\\": 1, \\"b\\": 2}', 'arguments as the policy wrote them')
    t.equal((await pair.ledger(session)).calls.length, 3)
  })
}

t.test('a chat object keeps its own history', async t => {
  const { google, asked } = await sdkWorld(t, [{ pieces: ['one'] }, { pieces: ['two'] }])
  const chat = google().chats.create({ model: 'm' })
  t.equal((await chat.sendMessage({ message: 'first' })).text, 'one')
  t.equal((await chat.sendMessage({ message: 'second' })).text, 'two')
  t.match(asked(1)['messages'], [
    { role: 'user', content: 'first' },
    { role: 'assistant', content: 'one' },
    { role: 'user', content: 'second' },
  ])
})

t.test('images and a schema reach the engine', async t => {
  const { google, asked } = await sdkWorld(t, [{ pieces: ['{"color":"red"}'] }])
  const schema = { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] }
  const answer = await google().models.generateContent({
    model: 'm',
    contents: [{ role: 'user', parts: [{ text: 'which?' }, { inlineData: { mimeType: 'image/png', data: PNG } }] }],
    config: { responseMimeType: 'application/json', responseJsonSchema: schema },
  })
  t.equal(answer.text, '{"color":"red"}')
  t.match(JSON.stringify(asked(0)['messages']), `data:image/png;base64,${PNG}`.slice(0, 60))
  t.match(asked(0)['response_format'], { type: 'json_schema', json_schema: { schema } })
})

t.test('countTokens and models.list', async t => {
  const { google, engine } = await sdkWorld(t, [])
  t.match(await google().models.countTokens({ model: 'm', contents: 'hi' }), { totalTokens: 6 })
  t.equal(engine.generations.length, 0)
  const names: (string | undefined)[] = []
  for await (const model of await google().models.list()) names.push(model.name)
  t.ok(names.length > 0 && names.every(name => name?.startsWith('models/')), names.join())
})
