// What durability costs (npm run perf:store): records per second through a shard, each acknowledged when it is on disk, against what the
// disk does by itself (a write and fdatasync) and what lmdb does (one synchronous transaction), all in one run, in turns: other load on
// the machine falls on each alike. `--folder` names the disk to measure.

import { closeSync, fdatasyncSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { open } from 'lmdb'
import { openRecordStore } from '../../src/store/record-store.js'

/** Bytes of an entry: a turn of an agent, its suffix of ids, logprobs and text. */
const RECORD_BYTES = 6_000
/** Records that wait when a commit begins: calls that ended at once. */
const WIDTHS = [1, 8, 64] as const
const ROUNDS = 5

/** Stores `width` records at once and waits for them. */
type Work = (width: number) => void | Promise<void>

async function perSecond(work: Work, width: number, commits: number): Promise<number> {
  const started = process.hrtime.bigint()
  for (let commit = 0; commit < commits; commit += 1) await work(width)
  return (width * commits * 1e9) / Number(process.hrtime.bigint() - started)
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0

const { folder: given, commits } = parseArgs({
  options: { folder: { type: 'string', default: tmpdir() }, commits: { type: 'string', default: '100' } },
}).values
mkdirSync(given, { recursive: true })
const folder = mkdtempSync(join(given, 'sextant-perf-store-'))
const record = Buffer.alloc(RECORD_BYTES, 7)

const file = openSync(join(folder, 'raw'), 'w')
const raw: Work = width => {
  for (let count = 0; count < width; count += 1) writeSync(file, record)
  fdatasyncSync(file)
}

const database = open<Uint8Array, number[]>({
  path: join(folder, 'lmdb'),
  noSubdir: false,
  encoding: 'binary',
  overlappingSync: false,
  mapSize: 1 << 30,
})
let key = 0
const library: Work = width =>
  database.transactionSync(() => {
    for (let count = 0; count < width; count += 1) void database.put([key++], record)
  })

const store = await openRecordStore({
  stateDir: folder,
  shard: 1,
  mode: 'owner',
  maxBytes: 8 * 2 ** 30,
  retentionMs: 1e9,
})
const next = new Map<string, number>()
/** Records of as many sessions: a session waits for its answer before it asks again. */
const shard: Work = async width => {
  await Promise.all(
    Array.from({ length: width }, (_, index) => {
      const sessionId = `s-${index}`
      const at = next.get(sessionId) ?? 0
      next.set(sessionId, at + 1)
      return store.append(sessionId, at, record)
    }),
  )
}

const works = { raw, library, shard }
const cpu = { busyMs: 0, records: 0 }
try {
  console.log(`records of ${RECORD_BYTES} bytes, median of ${ROUNDS} rounds of ${commits} commits, in ${given}`)
  console.log('| records a commit | fdatasync/s | lmdb/s | shard/s | shard : fdatasync | shard : lmdb |')
  console.log('|---|---|---|---|---|---|')
  for (const width of WIDTHS) {
    const rates: Record<keyof typeof works, number[]> = { raw: [], library: [], shard: [] }
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const name of ['raw', 'library', 'shard'] as const) {
        const before = process.cpuUsage()
        rates[name].push(await perSecond(works[name], width, Number(commits)))
        if (name !== 'shard' || width !== 64) continue
        const { user, system } = process.cpuUsage(before)
        cpu.busyMs += (user + system) / 1_000
        cpu.records += width * Number(commits)
      }
    }
    const [disk, lmdb, ours] = [median(rates.raw), median(rates.library), median(rates.shard)]
    const whole = (value: number) => Math.round(value).toLocaleString('en')
    const ratios = [ours / disk, ours / lmdb].map(ratio => ratio.toFixed(2))
    console.log(`| ${width} | ${whole(disk)} | ${whole(lmdb)} | ${whole(ours)} | ${ratios.join(' | ')} |`)
  }
  console.log(`processor time of the shard: ${((cpu.busyMs * 1_000) / cpu.records).toFixed(0)} microseconds a record`)
} finally {
  closeSync(file)
  await database.close()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
}
