// What must hold after any number of kills, looked at from outside: the client's log against the records on disk, the records against
// what the engine sampled, the results against the builder's output over the same records, and what the receiver got.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Decode } from '../../src/builders/base.js'
import { builders } from '../../src/builders/registry.js'
import type { Connection } from '../../src/cli/connection.js'
import type { SessionId } from '../../src/domain/ids.js'
import { isObject } from '../../src/domain/json.js'
import type { Trace } from '../../src/domain/trajectory.js'
import { recordsOf, type SessionLog, sealLog } from '../../src/ledger/session-log.js'
import { findLeftovers } from '../../src/runtimes/processes.js'
import { openRecordStore } from '../../src/store/record-store.js'
import { restoreSession } from '../../src/store/session-entries.js'
import type { Received } from './receiver.js'

export interface Acted {
  readonly sessionId: string
  readonly kind: string
  readonly marker: string
}

export interface Expected {
  readonly stateDir: string
  readonly connection: Connection
  /** Accepted tasks -> their samples. */
  readonly tasks: ReadonlyMap<string, number>
  readonly agentLog: string
  /** null = not known: the engine went down with the service. */
  readonly sampled: ReadonlyMap<string, readonly number[]> | null
  readonly received: ReadonlyMap<string, readonly Received[]>
  readonly decode: Decode
}

export interface Figures {
  readonly sessions: number
  readonly interrupted: number
  readonly acted: number
  readonly records: number
  readonly traces: number
  readonly deliveries: number
  readonly repeated: number
}

type Fail = (what: string) => void

/** Throws with all that does not hold. */
export async function verify(expected: Expected): Promise<Figures> {
  const problems: string[] = []
  const fail: Fail = what => void problems.push(what)
  const acted = readActed(expected.agentLog)
  const store = await openRecordStore({
    stateDir: expected.stateDir,
    shard: 1,
    mode: 'reader',
    maxBytes: 2 ** 33,
    retentionMs: Number.MAX_SAFE_INTEGER,
  })
  const figures = { sessions: 0, interrupted: 0, records: 0, traces: 0, deliveries: 0, repeated: 0 }
  const seen = new Set<string>()
  try {
    for (const [taskId, samples] of expected.tasks) {
      const task = await expected.connection.task(taskId)
      if (task.status !== 'completed') fail(`${taskId} is ${task.status}`)
      const results = task.results.map(asResult)
      if (results.length !== samples) fail(`${taskId} has ${results.length} results of ${samples}`)
      for (const result of results) {
        const sessionId = String(result.session_id)
        if (seen.has(sessionId)) fail(`${sessionId} has two results`)
        seen.add(sessionId)
        figures.sessions += 1
        if (result.error === 'gateway_restarted') {
          figures.interrupted += 1
          if (result.status !== 'ERROR' || result.metadata.failure_class !== 'infrastructure')
            fail(`${sessionId}: ${result.status} ${result.metadata.failure_class}`)
        } else if (result.status !== 'COMPLETED') fail(`${sessionId}: ${result.status} ${result.error}`)
        const log = restoreSession(store, sessionId as SessionId)?.log ?? null
        figures.records += checkRecords(sessionId, log, acted, expected.sampled, fail)
        figures.traces += await checkTraces(sessionId, log, result, expected.decode, fail)
      }
      checkDeliveries(taskId, task.results, expected.received.get(taskId) ?? [], figures, fail)
    }
  } finally {
    await store.close()
  }
  for (const { sessionId, marker } of acted)
    if (!seen.has(sessionId)) fail(`${sessionId} acted on ${marker} and has no result`)
  await checkLeftovers(expected.stateDir, fail)
  if (problems.length > 0) throw new Error(`${problems.length} problems:\n${problems.slice(0, 20).join('\n')}`)
  return { ...figures, acted: acted.length }
}

function readActed(path: string): readonly Acted[] {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line) as Acted)
  } catch {
    // No agent has acted yet.
    return []
  }
}

/** Every answer that the client acted on is on disk, once, with the ids that the engine sampled for it. */
function checkRecords(
  sessionId: string,
  log: SessionLog | null,
  acted: readonly Acted[],
  sampled: Expected['sampled'],
  fail: Fail,
): number {
  const records = log === null ? [] : [...recordsOf(log)]
  const ids = records.map(({ completionId }) => completionId)
  if (new Set(ids).size !== ids.length) fail(`${sessionId}: a completion is recorded twice`)
  const byMarker = new Map<string, number>()
  for (const { response, sampledIds } of records) {
    const marker = /m-\d+/.exec(JSON.stringify(response))?.[0]
    if (marker === undefined || sampled === null) continue
    byMarker.set(marker, (byMarker.get(marker) ?? 0) + 1)
    if (String(sampled.get(marker)) !== String(sampledIds))
      fail(`${sessionId}: ${marker} has other ids than were sampled`)
  }
  for (const one of acted) {
    if (one.sessionId !== sessionId) continue
    const count = byMarker.get(one.marker) ?? 0
    if (count !== 1) fail(`${sessionId}: ${one.marker} (${one.kind}) was acted on and is recorded ${count} times`)
  }
  return records.length
}

/** The builder, over the same records, in this process that nothing has disturbed. */
async function checkTraces(
  sessionId: string,
  log: SessionLog | null,
  result: WireResult,
  decode: Decode,
  fail: Fail,
): Promise<number> {
  const { traces } = result.trajectory
  if (log === null || log.calls.length === 0) {
    if (traces.length > 0) fail(`${sessionId}: ${traces.length} traces of no records`)
    return 0
  }
  const built = await builders.prefix_merging.build(
    sealLog(log),
    {},
    { decode, sessionId, taskId: String(result.task_id), taskMetadata: {} },
  )
  if (built.traces.length !== traces.length)
    fail(`${sessionId}: ${traces.length} traces, undisturbed ${built.traces.length}`)
  for (const [index, trace] of built.traces.entries()) {
    const other = traces[index]
    const part = other && differingPart(trace, other)
    if (part) fail(`${sessionId}: trace ${index} differs in ${part}`)
  }
  return traces.length
}

function differingPart(trace: Trace, wire: WireTrace): string | null {
  const same = (left: ArrayLike<number>, right: readonly number[]) =>
    left.length === right.length &&
    Array.from(left).every((value, at) => value === Math.fround(right[at] ?? Number.NaN))
  if (!same(trace.promptIds, wire.prompt_ids)) return 'prompt_ids'
  if (!same(trace.responseIds, wire.response_ids)) return 'response_ids'
  if (!same(trace.lossMask, wire.metadata.discarded_loss_mask ?? wire.loss_mask)) return 'loss_mask'
  if (!same(trace.responseLogprobs, wire.response_logprobs)) return 'response_logprobs'
  const calls = wire.metadata.completion_metadata.map(({ completion_id }) => completion_id)
  return String(trace.calls.map(({ completionId }) => completionId)) === String(calls) ? null : 'calls'
}

/** One delivery by its id, in the same bytes each time; twice only where an acknowledgement may have been lost. */
function checkDeliveries(
  taskId: string,
  results: readonly unknown[],
  received: readonly Received[],
  figures: { deliveries: number; repeated: number },
  fail: Fail,
): void {
  const ids = new Set(received.map(({ deliveryId }) => deliveryId))
  const bodies = new Set(received.map(({ body }) => body))
  if (ids.size !== 1) fail(`${taskId} was delivered under ${ids.size} ids`)
  if (bodies.size > 1) fail(`${taskId} was delivered in ${bodies.size} forms`)
  const body: unknown = JSON.parse(received[0]?.body ?? '{}')
  if (isObject(body) && JSON.stringify(body['results']) !== JSON.stringify(results))
    fail(`${taskId}: other results delivered`)
  figures.deliveries += ids.size
  figures.repeated += Math.max(0, received.length - 1)
}

async function checkLeftovers(stateDir: string, fail: Fail): Promise<void> {
  const sessions = join(stateDir, 'sessions')
  const alive = await findLeftovers(sessions, () => true)
  if (alive !== null && alive.length > 0) fail(`processes are left: ${JSON.stringify(alive)}`)
  for (const session of readdirSync(sessions)) {
    const left = readdirSync(join(sessions, session)).filter(name => name !== 'artifacts' && name !== 'logs')
    if (left.length > 0) fail(`${session} has left ${left.join(', ')}`)
  }
}

interface WireTrace {
  readonly prompt_ids: readonly number[]
  readonly response_ids: readonly number[]
  readonly loss_mask: readonly number[]
  readonly response_logprobs: readonly number[]
  readonly metadata: {
    readonly discarded_loss_mask?: readonly number[]
    readonly completion_metadata: readonly { readonly completion_id: string }[]
  }
}

interface WireResult {
  readonly session_id: string
  readonly task_id: string
  readonly status: string
  readonly error: string | null
  readonly metadata: { readonly failure_class: string | null }
  readonly trajectory: { readonly traces: readonly WireTrace[] }
}

/** The service's own answer; its shape is held by the tests of the encoder. */
const asResult = (value: unknown): WireResult => value as WireResult
