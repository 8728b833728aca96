// The token cases of the case book, each in every order of its calls.

import t from 'tap'
import { prefixMerging } from '../../../src/builders/prefix-merging.js'
import type { CapturedCall } from '../../../src/domain/completion.js'
import type { JsonObject } from '../../../src/domain/json.js'
import type { Trajectory } from '../../../src/domain/trajectory.js'
import {
  callsOf,
  decoderOf,
  type ExpectedTrace,
  ledgerOf,
  loadTokenFixtures,
  orders,
  recordOf,
  SESSION,
  streamOf,
  type TokenCase,
} from '../../support/ledger-fixtures.js'
import { projectRoot } from '../../support/paths.js'

const fixtures = loadTokenFixtures(`${projectRoot}/test/fixtures/ledger`)

const build = (token: TokenCase, calls: readonly CapturedCall[]): Promise<Trajectory> =>
  prefixMerging.build(
    ledgerOf(calls),
    {},
    { decode: decoderOf(token.text), sessionId: SESSION, taskId: 't', taskMetadata: {} },
  )

const text = (value: unknown): string => JSON.stringify(value)

function wanted(trace: ExpectedTrace, built: Trajectory): string {
  if (trace.s) return text({ s: trace.s, m: trace.m })
  const of = built.traces.find(made => text(made.calls.map(call => call.completionId)) === text(trace.of))
  if (!of) return `no trace of ${text(trace.of)}`
  const made = streamOf(of)
  const trained = made.m.reduce((sum, one) => sum + one, 0)
  return trained === trace.trained && (trace.len === undefined || made.s.length === trace.len)
    ? text(made)
    : `trace of ${text(trace.of)}: length ${made.s.length}, trained ${trained}`
}

let state = 12345
const random = () => {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
  return state / 0x80000000
}

t.ok(fixtures.length >= 40, 'all fixtures are there')

for (const { id, title, cases } of fixtures)
  t.test(`${id}: ${title}`, async t => {
    for (const [number, token] of cases.entries()) {
      const calls = callsOf(token, place => place * 10)
      const seen = new Map<string, { count: number; built: Trajectory }>()
      for (const order of orders(calls, 6, 100, random)) {
        const built = await build(token, order)
        const key = text([built.traces.map(streamOf), built.ledger])
        seen.set(key, { count: (seen.get(key)?.count ?? 0) + 1, built })
      }
      t.equal(seen.size, 1, `case ${number}: one result for every order`)
      const [first] = seen.values()
      if (!first) return t.fail('no order was tried')
      const { built } = first
      t.strictSame(
        built.traces.map(trace => text(streamOf(trace))).sort(),
        token.expect.traces.map(trace => wanted(trace, built)).sort(),
        `case ${number}: traces`,
      )
      t.strictSame(built.ledger.joins, token.expect.joins, `case ${number}: joins`)
      t.strictSame(built.ledger.tokens.setAside, token.expect.untrained, `case ${number}: set aside`)
    }
    return
  })

t.test('without start times the streams and counts are the same in every order', async t => {
  for (const { id, cases } of fixtures)
    for (const token of cases) {
      const results = new Set<string>()
      for (const order of orders(
        callsOf(token, () => 0),
        5,
        40,
        random,
      )) {
        const built = await build(token, order)
        results.add(text([built.traces.map(streamOf), built.ledger]))
      }
      t.equal(results.size, 1, id)
    }
})

t.test(
  'of calls with one prompt and different messages the first one is the witness, whatever arrived first',
  async t => {
    const message = (role: string, content: string) => ({ role, content })
    const answered = (content: string) => ({ choices: [{ message: message('assistant', content) }] })
    const asking = (id: string, messages: readonly JsonObject[], startedAtMs: number) =>
      recordOf({ id, prompt: [1, 2, 10, 99, 50], sampled: [20, 99], startedAtMs, over: { request: { messages } } })
    const [user, more] = [message('user', 'a'), message('user', 'b')]
    const question = { request: { messages: [user] }, response: answered('x') }
    const captured: readonly CapturedCall[] = [
      { record: recordOf({ id: 'c1', prompt: [1, 2], sampled: [70, 10, 99], over: question }), delivered: 'no' },
      { record: asking('c2', [user, message('assistant', 'x'), more], 20), delivered: 'yes' },
      { record: asking('c3', [user, message('assistant', 'y'), more], 30), delivered: 'yes' },
    ]
    const results = new Set<string>()
    for (const order of orders(captured, 6, 0, random)) {
      const context = { decode: decoderOf(), sessionId: SESSION, taskId: 't', taskMetadata: {} }
      const made = await prefixMerging.build(ledgerOf(order), {}, context)
      results.add(text([made.traces.map(streamOf), made.ledger]))
    }
    t.equal(results.size, 1)
    t.match([...results][0], /"setAside":\{\}/, 'what the first one shows was delivered')
  },
)
