// Objects by what changed, and what counts as the same.

import t from 'tap'
import type { JsonObject } from '../../../src/domain/json.js'
import { changeOf, isSame, withChange } from '../../../src/ledger/difference.js'

t.test('an object is had again from its difference, which names only what is other', async t => {
  const tools = [{ name: 'a' }]
  const earlier: JsonObject = { model: 'm', seed: 1, tools, stop: null }
  const cases: readonly (readonly [JsonObject, object])[] = [
    [{ model: 'm', seed: 1, tools: [{ name: 'a' }], stop: null }, { set: {} }],
    [{ model: 'm', seed: 2, tools, stop: null }, { set: { seed: 2 } }],
    [{ model: 'm', seed: 1, tools, stop: ['x'], n: 1 }, { set: { stop: ['x'], n: 1 } }],
    [
      { seed: 1, stop: undefined },
      { set: {}, gone: ['model', 'tools', 'stop'] },
    ],
    [{ seed: null }, { set: { seed: null }, gone: ['model', 'tools', 'stop'] }],
  ]
  for (const [object, change] of cases) {
    t.strictSame(changeOf(earlier, object), change)
    t.strictSame(
      withChange(earlier, changeOf(earlier, object)),
      Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)),
    )
  }
  t.equal(withChange(earlier, { set: { seed: 2 } })['tools'], tools, 'what did not change is the very same object')
})

t.test('names that every object inherits are names like others', async t => {
  const proto = JSON.parse('{"__proto__":{"a":1},"constructor":1}') as JsonObject
  t.strictSame(Object.keys(withChange({}, changeOf({}, proto))), ['__proto__', 'constructor'])
  t.strictSame(withChange(proto, changeOf(proto, {})), {})
  t.notOk(isSame({ constructor: null }, { toString: null }))
  t.ok(isSame(proto, JSON.parse('{"constructor":1,"__proto__":{"a":1}}')))
})

t.test('values are the same as JSON, keys in any order', async t => {
  t.ok(isSame({ a: [1, { b: 'x' }], c: null }, { c: null, a: [1, { b: 'x' }] }))
  for (const [left, right] of [
    [1, '1'],
    [null, {}],
    [[], {}],
    [[1], [1, 2]],
    [{ a: 1 }, { a: 1, b: 2 }],
    [{ a: 1 }, { b: 1 }],
    [undefined, null],
  ] as const)
    t.notOk(isSame(left, right), JSON.stringify([left, right]))
})
