// What the token ledger costs (npm run perf:ledger): sessions of 10 to 1,000 calls with up to 200,000 tokens of context. Ingest, build,
// memory, entries for the store, the binary result; beside it the reference's rule written straightforwardly. Times are processor
// time of this process, so that another load on the machine disturbs them little.

import { sessionResultBinary } from '../../src/api/result-binary.js'
import { prefixMerging } from '../../src/builders/prefix-merging.js'
import type { CompletionRecord, SessionLedger } from '../../src/domain/completion.js'
import type { Trajectory } from '../../src/domain/trajectory.js'
import { insertCall, sealLog, sessionLog } from '../../src/ledger/session-log.js'
import { encode } from '../../src/wire/codec.js'
import { sessionResult } from '../../test/support/traces.js'
import { type KeptRecord, keep, mergeStraightforwardly } from './ledger/reference.js'
import { perfSession, SESSION, type Shape } from './ledger/session.js'

const BYTES_PER_TOKEN = 16
/** The quickest counts: what comes on top is another load's, or a collection. */
const BUILDS = 5

interface Figures {
  readonly shape: Shape
  readonly received: number
  readonly distinct: number
  /** Milliseconds of processor time. */
  readonly ingestMs: number
  readonly buildMs: number
  readonly referenceIngestMs: number
  readonly referenceBuildMs: number
  /** Heap and buffers, in bytes. */
  readonly tokenMemory: number
  readonly referenceMemory: number
  /** Characters of messages, tools and bodies that the log keeps, the last body of each agent aside. */
  readonly keptText: number
  readonly entryBytes: number
  /** Every message, tool and answer once. */
  readonly transcriptBytes: number
  readonly wireTokens: number
  /** Of the binary result: without messages, and with them. */
  readonly wireTokenBytes: number
  readonly wireBytes: number
}

const processorMs = (since?: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1000
}

const collect = globalThis.gc ?? (() => undefined)

/** Heap and buffers after a collection, in bytes. */
function memory(): number {
  collect()
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Processor time of `work`, without that of the collections before. */
function timed<T>(work: () => T): { readonly ms: number; readonly value: T } {
  const started = process.cpuUsage()
  const value = work()
  return { ms: processorMs(started), value }
}

const received = ({ promptIds }: CompletionRecord): number => promptIds?.length ?? 0

/** Tokens that a session holds each once. */
const distinctTokens = ({ shared }: SessionLedger): number =>
  shared?.segments.reduce((sum, { ids }) => sum + ids.length, 0) ?? 0

const build = (ledger: SessionLedger): Promise<Trajectory> =>
  prefixMerging.build(ledger, {}, { decode: async () => null, sessionId: SESSION, taskId: 't', taskMetadata: {} })

/** Takes the session's records one by one, as frames bring them. */
function ingest(shape: Shape) {
  const log = sessionLog(SESSION)
  let ms = 0
  let tokens = 0
  let entryBytes = 0
  for (const record of perfSession(shape)) {
    tokens += received(record)
    const inserted = timed(() => insertCall(log, record))
    ms += inserted.ms
    entryBytes += encode(inserted.value).length
  }
  return { log, ms, tokens, entryBytes }
}

async function measure(calls: number, context: number): Promise<Figures> {
  const shape: Shape = { calls, context, hasText: true }
  const bare: Shape = { ...shape, hasText: false }

  let before = memory()
  let kept: KeptRecord[] | null = []
  let referenceIngestMs = 0
  for (const record of perfSession(bare)) {
    const copied = timed(() => keep(record))
    referenceIngestMs += copied.ms
    kept.push(copied.value)
  }
  const referenceMemory = memory() - before
  const records = kept
  let referenceBuildMs = Number.POSITIVE_INFINITY
  for (let run = 0; run < BUILDS; run++) {
    collect()
    referenceBuildMs = Math.min(referenceBuildMs, timed(() => mergeStraightforwardly(records)).ms)
  }
  kept = null
  records.length = 0

  before = memory()
  const tokensOnly = ingest(bare)
  // Several of the small ones: what the engine itself takes meanwhile would weigh as much as one.
  const others = Array.from({ length: calls > 100 ? 0 : 9 }, () => ingest(bare).log)
  const tokenMemory = (memory() - before) / (others.length + 1)
  others.length = 0
  const bareLedger = sealLog(tokensOnly.log)
  const bareMade = await build(bareLedger)
  let buildMs = Number.POSITIVE_INFINITY
  for (let run = 0; run < BUILDS; run++) {
    collect()
    const started = process.cpuUsage()
    await build(bareLedger)
    buildMs = Math.min(buildMs, processorMs(started))
  }
  const wireTokenBytes = (await sessionResultBinary(sessionResult(bareMade))).length

  const whole = ingest(shape)
  const wholeLedger = sealLog(whole.log)
  const transcriptBytes = JSON.stringify(wholeLedger.shared?.lists.contents).length
  const keptText =
    transcriptBytes + wholeLedger.calls.reduce((sum, { record }) => sum + record.originalRequest.length, 0)
  const made = await build(wholeLedger)
  return {
    shape,
    received: whole.tokens,
    distinct: distinctTokens(bareLedger),
    ingestMs: tokensOnly.ms,
    buildMs,
    referenceIngestMs,
    referenceBuildMs,
    tokenMemory,
    keptText,
    referenceMemory,
    entryBytes: whole.entryBytes,
    transcriptBytes,
    wireTokens: made.traces.reduce((sum, trace) => sum + trace.promptIds.length + trace.responseIds.length, 0),
    wireTokenBytes,
    wireBytes: (await sessionResultBinary(sessionResult(made))).length,
  }
}

const fixed = (value: number, digits = 1): string => value.toFixed(digits)
const row = (...cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`

function table(head: readonly string[], rows: readonly string[]): string {
  return [row(...head), row(...head.map(() => '---')), ...rows].join('\n')
}

const SHAPES = [10, 100, 1_000].flatMap(calls => [100_000, 200_000].map(context => [calls, context] as const))
// The code warm, and the codec's pool grown, which is no memory of a ledger.
encode('x'.repeat(8 * 2 ** 20))
await measure(10, 20_000)
const all: Figures[] = []
for (const [calls, context] of SHAPES) {
  all.push(await measure(calls, context))
  process.stderr.write(`${calls} calls, ${context} tokens: done\n`)
}

console.log(
  table(
    ['calls', 'context', 'prompt ids received', 'distinct ids', 'ingest, M ids/s', 'build', 'reference: copy', 'merge'],
    all.map(({ shape, ...one }) =>
      row(
        shape.calls,
        shape.context,
        one.received,
        one.distinct,
        fixed(one.received / one.ingestMs / 1_000, 0),
        `${fixed(one.buildMs)} ms`,
        `${fixed(one.referenceIngestMs)} ms`,
        `${fixed(one.referenceBuildMs)} ms`,
      ),
    ),
  ),
)
console.log(
  `\n${table(
    [
      'calls',
      'context',
      'memory, bytes/id',
      'of the reference',
      'text kept',
      'store',
      'of its limit',
      'wire, bytes/id',
      'with text',
    ],
    all.map(({ shape, ...one }) =>
      row(
        shape.calls,
        shape.context,
        fixed(one.tokenMemory / one.distinct),
        fixed(one.referenceMemory / one.distinct, 0),
        `${fixed(one.keptText / one.transcriptBytes)} x`,
        `${fixed(one.entryBytes / 1e6, 2)} MB`,
        `${fixed((100 * one.entryBytes) / (1.5 * (one.transcriptBytes + BYTES_PER_TOKEN * one.distinct)), 0)} %`,
        fixed(one.wireTokenBytes / one.wireTokens),
        fixed(one.wireBytes / one.wireTokens),
      ),
    ),
  )}`,
)

const find = (calls: number, context: number): Figures | undefined =>
  all.find(({ shape }) => shape.calls === calls && shape.context === context)
const growth = (name: string, less: Figures | undefined, more: Figures | undefined): string =>
  less && more
    ? row(
        name,
        fixed(more.received / less.received, 2),
        fixed(more.ingestMs / less.ingestMs, 2),
        fixed(more.buildMs / less.buildMs, 2),
        fixed(more.tokenMemory / less.tokenMemory, 2),
        fixed(more.entryBytes / less.entryBytes, 2),
      )
    : ''
const half = await measure(500, 100_000)
console.log(
  `\n${table(
    ['twice the tokens', 'received', 'ingest', 'build', 'memory', 'store'],
    [
      growth('in 100 calls, 100,000 to 200,000', find(100, 100_000), find(100, 200_000)),
      growth('in 1,000 calls, 100,000 to 200,000', find(1_000, 100_000), find(1_000, 200_000)),
      growth('in twice the calls, 500 to 1,000', half, find(1_000, 200_000)),
    ],
  )}`,
)
