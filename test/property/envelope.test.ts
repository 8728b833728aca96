// Any plain data with refs at any place the kernel looks: what arrives is what was sent, refs are live again, and nothing else became one.

import fc from 'fast-check'
import t from 'tap'
import { open, seal } from '../../actors/system/envelope.js'
import type { ActorRef, Address, AnyMessage } from '../../actors/system/ref.js'

type Marked = { readonly mark: 'ref'; readonly address: Address }

const address = fc.record({ system: fc.constantFrom('main', 'proxy-1'), path: fc.constantFrom('/a/', '/a/b/') })
const lookalike = address.map(found => ({ $ref: found }))
const marked = address.map((found): Marked => ({ mark: 'ref', address: found }))
const leaf = fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.int32Array({ maxLength: 4 }), lookalike, marked)
/** Down to level 4, where refs are looked for. */
const body = fc.object({ maxDepth: 2, maxKeys: 4, values: [leaf], key: fc.string({ maxLength: 5 }) })

const told: Address[] = []
const refOf = (to: Address): ActorRef<AnyMessage> => ({ address: to, tell: () => void told.push(to) })

const isMarked = (value: object): value is Marked => (value as { mark?: unknown }).mark === 'ref'

/** Replaces marks by what `make` gives for them. */
function place(value: unknown, make: (marked: Marked) => unknown): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  if (isMarked(value)) return make(value)
  if (Array.isArray(value)) return value.map(part => place(part, make))
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, place(part, make)]))
}
const plain = (value: unknown): unknown =>
  place(
    place(value, ({ address: to }) => to),
    () => null,
  )

t.test('refs survive the way to another thread, and data stays data', async t => {
  fc.assert(
    fc.property(body, content => {
      const sent = place({ type: 'message', content }, ({ address: to }) => refOf(to)) as AnyMessage
      const before = JSON.stringify(sent)
      const arrived = structuredClone(seal(sent))
      if (!open(arrived, refOf)) t.fail('malformed')
      if (JSON.stringify(sent) !== before) t.fail('the sender’s message was changed')
      // A ref back to its mark, so that both sides compare as data.
      t.strictSame(unref(arrived.message), plain({ type: 'message', content }))
    }),
    { numRuns: 300 },
  )
})

t.test('an envelope whose refs are not where it says is refused', async t => {
  for (const refs of [[[]], [['gone']], [['content', 'x']], [['content']]]) {
    t.notOk(open({ message: { type: 'm', content: 1 } as AnyMessage, refs }, refOf), JSON.stringify(refs))
  }
  const message = { type: 'm', to: { $ref: { system: 'main', path: 'no slashes' } } } as AnyMessage
  t.notOk(open({ message, refs: [['to']] }, refOf))
})

t.test('a message without refs goes as it is', async t => {
  const message = { type: 'm', ids: Int32Array.of(1, 2) }
  t.equal(seal(message).message, message)
})

/** Live refs as their address. */
function unref(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  if (typeof (value as { tell?: unknown }).tell === 'function') return (value as ActorRef<never>).address
  if (Array.isArray(value)) return value.map(unref)
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, unref(part)]))
}
