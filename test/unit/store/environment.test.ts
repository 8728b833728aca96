// The primitive: commits that are all or nothing and on disk, checksums, versions, one owner.
import { statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { StoreChange, StoreEnvironment } from '../../../src/store/base.js'
import { type EnvironmentOptions, openEnvironment } from '../../../src/store/environment.js'
import { lockStore } from '../../../src/store/lock.js'
import { flipByte } from '../../support/damage.js'

const schema = { kind: 'test', version: 1, migrations: {} }
const bytesOf = (text: string): Uint8Array => Buffer.from(text)
const put = (key: string, text: string): StoreChange => ({ key: ['entry', key], value: bytesOf(text) })
const text = (bytes: Uint8Array | null): string | null => bytes && Buffer.from(bytes).toString()

const opened = (folder: string, options: Partial<EnvironmentOptions> = {}): Promise<StoreEnvironment> =>
  openEnvironment({ folder, mode: 'owner', schema, maxBytes: 1 << 26, ...options })

const all = (store: StoreEnvironment): Record<string, string | null> =>
  Object.fromEntries(
    [...store.entries(['entry'])].map(entry => [
      String(entry.key[1]),
      'value' in entry ? text(entry.value) : entry.error.code,
    ]),
  )

t.test('what was committed is there after it was closed, in order of the keys', async t => {
  const folder = join(t.testdir(), 'store')
  const store = await opened(folder)
  await Promise.all([store.commit([put('b', 'two'), put('a', 'one')]), store.commit([put('c', 'three')])])
  await store.commit([
    { key: ['entry', 'b'], value: null },
    { key: ['entry', 'never'], value: null },
  ])
  await store.close()
  await t.rejects(store.commit([put('d', 'late')]), { code: 'STORE_UNWRITABLE' })
  const again = await opened(folder)
  t.strictSame(all(again), { a: 'one', c: 'three' })
  t.equal(again.get(['entry', 'b']), null)
  t.equal(statSync(folder).mode & 0o777, 0o700)
  await again.close()
})

t.test('a reader sees what is committed while the owner goes on', async t => {
  const folder = join(t.testdir(), 'store')
  await t.rejects(opened(folder, { mode: 'reader' }), { code: 'STORE_MISSING' })
  const owner = await opened(folder)
  const reader = await opened(folder, { mode: 'reader' })
  await owner.commit([put('a', 'one')])
  await new Promise(setImmediate)
  t.strictSame(all(reader), { a: 'one' })
  await reader.close()
  await owner.commit([put('b', 'two')])
  t.equal(text(owner.get(['entry', 'b'])), 'two')
  await owner.close()
})

t.test('a flipped byte is told by its key, and the other entries are read', async t => {
  const folder = join(t.testdir(), 'store')
  const store = await opened(folder)
  await store.commit([put('a', 'first value'), put('b', 'second value'), put('c', 'third value')])
  await store.close()
  flipByte(join(folder, 'data.mdb'), 'second value')
  const again = await opened(folder)
  t.strictSame(all(again), { a: 'first value', b: 'STORE_DAMAGED', c: 'third value' })
  t.throws(() => again.get(['entry', 'b']), { code: 'STORE_DAMAGED', message: /entry b/ })
  await again.close()
})

t.test('a file that is cut off is refused before a page of it is read, also while it is open', async t => {
  const folder = join(t.testdir(), 'store')
  const file = join(folder, 'data.mdb')
  const store = await opened(folder)
  await store.commit([{ key: ['entry', 'large'], value: Buffer.alloc(1 << 20, 7) }])
  const { fileBytes } = store.usage()
  truncateSync(file, fileBytes - 4_096)
  t.throws(() => store.get(['entry', 'large']), { code: 'STORE_DAMAGED', message: /cut off/ })
  t.throws(() => [...store.entries(['entry'])], { code: 'STORE_DAMAGED' })
  await t.rejects(store.commit([put('a', 'one')]), { code: 'STORE_DAMAGED' })
  await store.close()
  for (const mode of ['owner', 'reader'] as const) {
    await t.rejects(opened(folder, { mode }), { code: 'STORE_DAMAGED', message: /cut off: it has \d+ bytes/ })
  }
  truncateSync(file, 100)
  await t.rejects(opened(folder), { code: 'STORE_DAMAGED', message: /no data file of this store/ })
})

t.test('an older store is brought forward in one commit; a newer one and another kind are refused', async t => {
  const folder = join(t.testdir(), 'store')
  const first = await opened(folder)
  await first.commit([put('a', 'one'), put('b', 'two')])
  await first.close()
  const second = {
    kind: 'test',
    version: 2,
    migrations: {
      1: function* (view: Pick<StoreEnvironment, 'entries'>) {
        for (const entry of view.entries(['entry'])) {
          yield { key: entry.key, value: null }
          if ('value' in entry) yield { key: ['item', ...entry.key.slice(1)], value: bytesOf(`${text(entry.value)}!`) }
        }
      },
    },
  }
  await t.rejects(opened(folder, { schema: second, mode: 'reader' }), {
    code: 'STORE_VERSION',
    message: /has schema 1, wanted 2: a start of the service/,
  })
  const store = await opened(folder, { schema: second })
  t.equal(text(store.get(['item', 'a'])), 'one!')
  t.strictSame(all(store), {})
  await store.close()
  const reopened = await opened(folder, { schema: second, mode: 'reader' })
  t.equal(text(reopened.get(['item', 'b'])), 'two!', 'migrated once')
  await reopened.close()
  await t.rejects(opened(folder), { code: 'STORE_VERSION', message: /newer version: schema 2, this one knows up to 1/ })
  await t.rejects(opened(folder, { schema: { ...second, kind: 'other' } }), {
    code: 'STORE_VERSION',
    message: /a test store/,
  })
  await t.rejects(opened(folder, { schema: { ...second, version: 4 } }), { message: /cannot bring it forward/ })
})

t.test('a migration that cannot be written leaves the store as it was', async t => {
  const folder = join(t.testdir(), 'store')
  const first = await opened(folder)
  await first.commit([put('a', 'one')])
  await first.close()
  const broken = {
    kind: 'test',
    version: 2,
    migrations: { 1: () => [put('a', 'changed'), { key: ['x'.repeat(3_000)], value: bytesOf('') }] },
  }
  await t.rejects(opened(folder, { schema: broken }), { code: 'INTERNAL_BUG', message: /a key of the store is over/ })
  const again = await opened(folder)
  t.strictSame(all(again), { a: 'one' })
  await again.close()
})

t.test('what is over maxBytes is refused with all that waits behind it; removing is not', async t => {
  const folder = join(t.testdir(), 'store')
  const store = await opened(folder, { maxBytes: 1 << 20 })
  const large = (key: string): StoreChange => ({ key: ['entry', key], value: Buffer.alloc(400_000, 1) })
  await store.commit([large('a')])
  await store.commit([large('b')])
  const full = store.commit([large('c')])
  const behind = store.commit([put('d', 'small')])
  await t.rejects(full, { code: 'STORE_FULL', message: /store.maxBytes/ })
  await t.rejects(behind, { code: 'STORE_FULL' })
  t.strictSame(
    [...store.keys(['entry'])],
    [
      ['entry', 'a'],
      ['entry', 'b'],
    ],
  )
  await store.commit([{ key: ['entry', 'a'], value: null }, put('note', 'n')], { makesRoom: true })
  await store.commit([{ key: ['entry', 'b'], value: null }], { makesRoom: true })
  await store.commit([put('d', 'small')])
  await store.commit([large('c')])
  t.ok(store.usage().fileBytes <= 1 << 20, 'in the pages that had become free')
  t.equal(store.usage().pendingBytes, 0)
  await store.close()
})

t.test('one service at a time holds the stores of a stateDir; a dead one is followed', t => {
  const stateDir = t.testdir()
  const lock = lockStore(stateDir)
  t.throws(() => lockStore(stateDir), { code: 'STORE_IN_USE', message: new RegExp(`process id ${process.pid};`) })
  lock.release()
  const dead = lockStore(stateDir, 2 ** 22 + 1)
  const next = lockStore(stateDir)
  dead.release()
  t.throws(() => lockStore(stateDir), { code: 'STORE_IN_USE' }, 'the release of the dead one lets go of nothing')
  next.release()
  lockStore(stateDir).release()
  t.end()
})
