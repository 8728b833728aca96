import t from 'tap'
import { Mailbox } from '../../../../actors/system/mailbox.js'

const message = (n: number) => ({ type: `m${n}` })

t.test('first in, first out, over many rounds', async t => {
  const mailbox = new Mailbox({ capacity: 5_000, overflow: 'refuse' })
  let sent = 0
  let received = 0
  for (let round = 0; round < 50; round++) {
    for (let n = 0; n < 400; n++) if (mailbox.push(message(sent++)) !== null) t.fail('refused')
    for (let n = 0; n < 350; n++) {
      const { type } = mailbox.shift() ?? {}
      if (type !== `m${received++}`) t.fail(`m${received - 1} wanted, ${type} found`)
    }
  }
  t.equal(mailbox.size, sent - received)
  t.strictSame(
    mailbox.drain().map(({ type }) => type),
    Array.from({ length: sent - received }, (_, n) => `m${received + n}`),
  )
  t.equal(mailbox.size, 0)
  t.equal(mailbox.shift(), null)
})

t.test('a full mailbox hands back the message, or the oldest', async t => {
  const refuse = new Mailbox({ capacity: 1, overflow: 'refuse' })
  t.strictSame([refuse.push(message(1)), refuse.push(message(2))], [null, message(2)])
  const drop = new Mailbox({ capacity: 1, overflow: 'drop-oldest' })
  t.strictSame([drop.push(message(1)), drop.push(message(2))], [null, message(1)])
  t.strictSame([refuse.overflows, drop.overflows], [1, 1])
  t.strictSame([refuse.shift(), drop.shift()], [message(1), message(2)])
})

t.test('a notice of the kernel has place in a full mailbox', async t => {
  const mailbox = new Mailbox({ capacity: 1, overflow: 'refuse' })
  mailbox.push(message(1))
  mailbox.pushNotice(message(2))
  t.equal(mailbox.size, 2)
  t.strictSame(mailbox.push(message(3)), message(3))
})

t.test('a capacity is a whole number from 1', async t => {
  for (const capacity of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    t.throws(() => new Mailbox({ capacity, overflow: 'refuse' }), { code: 'INTERNAL_BUG' })
  }
})
