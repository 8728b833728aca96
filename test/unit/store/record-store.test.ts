// The records of a shard: in order, told apart when damaged, bounded in size.
import { execFile } from 'node:child_process'
import { readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import {
  openRecordStore,
  type RecordStore,
  type RecordStoreOptions,
  shardFolder,
} from '../../../src/store/record-store.js'
import { flipByte } from '../../support/damage.js'
import { projectRoot } from '../../support/paths.js'
import { noSmallDisk, smallDisk } from '../../support/small-disk.js'

const opened = (stateDir: string, options: Partial<RecordStoreOptions> = {}): Promise<RecordStore> =>
  openRecordStore({ stateDir, shard: 1, mode: 'owner', maxBytes: 1 << 26, retentionMs: 1_000, ...options })

const record = (name: string, size = 0): Uint8Array =>
  Buffer.concat([Buffer.from(`<${name}>`), Buffer.alloc(size, name)])

/** Names of the records as `record` made them, or the code of the error in their place. */
const read = (store: RecordStore, sessionId: string): readonly string[] =>
  [...store.read(sessionId)].map(one =>
    'error' in one ? one.error.code : (/^<(.*?)>/.exec(Buffer.from(one.bytes).toString('latin1'))?.[1] ?? '?'),
  )

async function fill(store: RecordStore, sessionId: string, count: number, size = 0): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, index) => store.append(sessionId, index, record(`${sessionId}.${index}`, size))),
  )
}

t.test('records come back in order, whatever their number, and each session by itself', async t => {
  const stateDir = t.testdir()
  const store = await opened(stateDir)
  await Promise.all([fill(store, 's-1', 12), fill(store, 's-10', 2), fill(store, 's-2', 1, 100_000)])
  await store.append('s-2', 0, record('s-2.0', 100_000))
  await t.rejects(store.append('s-2', 3, record('gap')), { code: 'INTERNAL_BUG' })
  await store.close()
  const again = await opened(stateDir)
  t.strictSame(
    read(again, 's-1'),
    Array.from({ length: 12 }, (_, index) => `s-1.${index}`),
  )
  t.strictSame(read(again, 's-10'), ['s-10.0', 's-10.1'])
  t.equal([...again.read('s-2')].length, 1, 'appending twice is the same as once')
  t.strictSame(read(again, 'nobody'), [])
  t.match(again.sessions(), [
    { sessionId: 's-1', records: 12, finishedAtMs: null },
    { sessionId: 's-10', records: 2 },
    { sessionId: 's-2', records: 1, bytes: 102_400 },
  ])
  await again.drop('s-1')
  await again.drop('s-1')
  await again.append('s-10', 2, record('s-10.2'))
  t.strictSame([read(again, 's-1'), read(again, 's-10').length], [[], 3])
  t.match(again.usage(), { sessions: 2, finished: 0, pendingBytes: 0 })
  await again.close()
})

t.test('a damaged and a missing record are named; those after them are read', async t => {
  const stateDir = t.testdir()
  const store = await opened(stateDir)
  await fill(store, 's-1', 4, 5_000)
  await fill(store, 's-2', 2)
  await store.close()
  flipByte(join(shardFolder(stateDir, 1), 'data.mdb'), '<s-1.1>')
  flipByte(join(shardFolder(stateDir, 1), 'data.mdb'), '<s-2.1>')
  const reader = await opened(stateDir, { mode: 'reader' })
  t.strictSame(read(reader, 's-1'), ['s-1.0', 'STORE_DAMAGED', 's-1.2', 's-1.3'])
  t.strictSame(read(reader, 's-2'), ['s-2.0', 'STORE_DAMAGED'])
  const [, second] = [...reader.read('s-1')]
  t.match(second, {
    index: 1,
    error: { code: 'STORE_DAMAGED', message: /record 1 of session s-1/, details: { sessionId: 's-1', index: 1 } },
  })
  await t.rejects(reader.append('s-1', 4, record('x')), { code: 'STORE_UNWRITABLE' })
  await reader.close()
})

t.test('a shard that is cut off is refused with its path and lengths', async t => {
  const stateDir = t.testdir()
  const store = await opened(stateDir)
  await fill(store, 's-1', 8, 50_000)
  const { fileBytes } = store.usage()
  await store.close()
  const file = join(shardFolder(stateDir, 1), 'data.mdb')
  truncateSync(file, Math.floor(fileBytes / 2))
  for (const mode of ['owner', 'reader'] as const) {
    await t.rejects(opened(stateDir, { mode }), {
      code: 'STORE_DAMAGED',
      message: new RegExp(`data.mdb is cut off.*end at ${fileBytes}`),
    })
  }
})

t.test('finished sessions go oldest first when room is wanted or their time is over; others never', async t => {
  const store = await opened(t.testdir(), { maxBytes: 4 << 20, retentionMs: 1_000 })
  for (const name of ['a', 'b', 'c', 'open']) await fill(store, name, 8, 100_000)
  await store.finish('b', 10_000)
  await store.finish('a', 10_001)
  await store.finish('c', 10_002)
  await store.finish('nobody', 10_002)
  t.strictSame(await store.retain(10_500), ['b'], 'three quarters of maxBytes')
  t.strictSame(await store.retain(10_500), [])
  t.strictSame(read(store, 'a').length, 8)
  t.strictSame(await store.retain(11_002), ['a'], 'older than the retention')
  t.strictSame(await store.retain(99_000), ['c'])
  t.strictSame(
    store.sessions().map(one => one.sessionId),
    ['open'],
  )
  await store.close()
})

t.test('the file stays within maxBytes however much goes through it', async t => {
  const maxBytes = 8 << 20
  const store = await opened(t.testdir(), { maxBytes })
  let written = 0
  for (let round = 0; round < 60; round += 1) {
    const name = `s-${round}`
    for (let index = 0; index < 6; index += 1) {
      const size = 1_000 + ((round * 7 + index * 131) % 17) * 20_000
      written += size
      await store.append(name, index, record(name, size)).catch(async cause => {
        if (cause.code !== 'STORE_FULL') throw cause
        await store.retain(0)
        await store.append(name, index, record(name, size))
      })
    }
    await store.finish(name, round)
    await store.retain(0)
  }
  t.ok(written > 5 * maxBytes)
  t.ok(store.usage().fileBytes <= maxBytes, `${store.usage().fileBytes} of ${maxBytes}`)
  t.ok(store.usage().recordBytes <= maxBytes * 0.75)
  await store.close()
})

t.test('a session with many records is dropped in pieces, and one that was cut short is whole', async t => {
  const stateDir = t.testdir()
  const store = await opened(stateDir)
  await fill(store, 's-1', 700)
  await store.drop('s-1')
  t.strictSame([store.sessions(), read(store, 's-1')], [[], []])
  await store.close()
})

t.test('another process reads while the owner writes', async t => {
  const stateDir = t.testdir()
  const store = await opened(stateDir)
  await fill(store, 's-1', 50, 3_000)
  const module = join(projectRoot, 'dist/src/store/record-store.js')
  const program = `
    const { openRecordStore } = await import(${JSON.stringify(module)})
    const store = await openRecordStore({ stateDir: ${JSON.stringify(stateDir)}, shard: 1, mode: 'reader', maxBytes: 1, retentionMs: 1 })
    console.log(JSON.stringify({ sessions: store.sessions(), read: [...store.read('s-1')].filter(one => 'bytes' in one).length }))
    await store.close()`
  const running = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  let index = 50
  let isOver = false
  void running.finally(() => {
    isOver = true
  })
  while (!isOver) {
    await store.append('s-1', index, record('more', 3_000))
    index += 1
  }
  const { sessions, read } = JSON.parse((await running).stdout)
  t.equal(sessions[0].sessionId, 's-1')
  t.ok(sessions[0].records >= 50 && read >= sessions[0].records, `${read} records read`)
  await store.close()
})

t.test('a killed owner leaves all that was acknowledged', async t => {
  const stateDir = t.testdir()
  const module = join(projectRoot, 'dist/src/store/record-store.js')
  const program = `
    import { writeSync } from 'node:fs'
    const { openRecordStore } = await import(${JSON.stringify(module)})
    const store = await openRecordStore({ stateDir: ${JSON.stringify(stateDir)}, shard: 1, mode: 'owner', maxBytes: 1 << 28, retentionMs: 1 })
    for (let index = 0; ; index += 1) void store.append('s-1', index, Buffer.alloc(10_000, index)).then(() => {
      writeSync(1, index + '\\n')
      if (index === 40) process.kill(process.pid, 'SIGKILL')
    }), await new Promise(setImmediate)`
  const failed = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    maxBuffer: 1 << 26,
  }).catch((cause: { signal: string; stdout: string }) => cause)
  t.equal((failed as { signal: string }).signal, 'SIGKILL')
  const acknowledged = failed.stdout.trim().split('\n').length
  const store = await opened(stateDir)
  const found = [...store.read('s-1')]
  t.ok(acknowledged > 40 && found.length >= acknowledged, `${found.length} found, ${acknowledged} acknowledged`)
  t.ok(found.every((one, index) => 'bytes' in one && one.index === index && one.bytes[0] === (index & 255)))
  await store.close()
})

const skip = noSmallDisk()

t.test('on a full disk appending is refused, reading goes on, and it resumes when there is room', { skip }, async t => {
  const disk = smallDisk('6m')
  t.teardown(() => disk.unmount())
  const store = await opened(disk.folder)
  await fill(store, 's-1', 4, 100_000)
  disk.fill(200_000)
  let stored = 4
  const failed = await (async () => {
    for (;;) {
      try {
        await store.append('s-1', stored, record(`s-1.${stored}`, 100_000))
        stored += 1
      } catch (cause) {
        return cause
      }
    }
  })()
  t.match(failed, { code: 'STORE_FULL', message: /the disk has \d+ left/ })
  t.strictSame(
    read(store, 's-1'),
    Array.from({ length: stored }, (_, index) => `s-1.${index}`),
  )
  disk.empty()
  await store.append('s-1', stored, record(`s-1.${stored}`, 100_000))
  t.equal(read(store, 's-1').at(-1), `s-1.${stored}`)
  await store.close()
})

t.test('a read-only store is refused by name to the owner and read by others', { skip }, async t => {
  const disk = smallDisk('6m')
  t.teardown(() => disk.unmount())
  const store = await opened(disk.folder)
  await fill(store, 's-1', 3)
  await store.close()
  disk.remount('ro')
  await t.rejects(opened(disk.folder), { code: 'STORE_UNWRITABLE' })
  const reader = await opened(disk.folder, { mode: 'reader' })
  t.strictSame(read(reader, 's-1'), ['s-1.0', 's-1.1', 's-1.2'])
  await reader.close()
  t.ok(readFileSync(join(shardFolder(disk.folder, 1), 'data.mdb')).length > 0)
})
