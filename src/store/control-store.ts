// The control store of main: tasks, sessions that began, results and the outbox, in an environment of its own beside the shards. Each
// change is on disk when its promise resolves. What belongs together is one commit: a task's end and its place in the outbox, the end of
// a delivery and what became of it. Values are JSON (control-records.ts), results in their binary form.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { RolloutError } from '../domain/errors.js'
import type { StoreChange, StoreEnvironment, StoreKey } from './base.js'
import type { KeptDelivery, KeptOutbox, KeptSession, KeptState, KeptTask, KeptTombstone } from './control-records.js'
import { openEnvironment } from './environment.js'
import { storeFolder } from './lock.js'
import type { Schema } from './schema.js'

/** Every change rejects with STORE_FULL, STORE_UNWRITABLE or STORE_DAMAGED, and then nothing of it is kept. */
export interface ControlStore {
  /** Throws STORE_DAMAGED naming what cannot be read. */
  load(): KeptState
  putTask(task: KeptTask): Promise<void>
  /** `binary`: the result that has no file, in its binary form. */
  putSession(session: KeptSession, binary?: Uint8Array | null): Promise<void>
  endTask(task: KeptTask, outbox: KeptOutbox | null): Promise<void>
  putOutbox(entry: KeptOutbox): Promise<void>
  /** The delivery is over: out of the outbox, and the task knows how it went. */
  settleOutbox(deliveryId: string, delivery: KeptDelivery): Promise<void>
  putTombstone(stone: KeptTombstone): Promise<void>
  dropTombstone(taskId: string): Promise<void>
  forgetTask(task: KeptTask): Promise<void>
  /** A result that has no file, as it was put. Throws STORE_DAMAGED when it is not there. */
  resultBytes(sessionId: string): Uint8Array
  close(): Promise<void>
}

export interface ControlStoreOptions {
  readonly stateDir: string
  /** Bound of its file. */
  readonly maxBytes: number
  /** `passing`: beside the store that keeps, in a folder of its own that is removed at the end. */
  readonly tasks: 'kept' | 'passing'
}

const SCHEMA: Schema = { kind: 'control', version: 1, migrations: {} }

export const controlFolder = (stateDir: string): string => join(storeFolder(stateDir), 'control')

/** Throws what `openEnvironment` throws. The owner holds the lock of its stateDir (lock.ts). */
export async function openControlStore({ stateDir, maxBytes, tasks }: ControlStoreOptions): Promise<ControlStore> {
  const isKept = tasks === 'kept'
  const folder = isKept ? controlFolder(stateDir) : passingFolder(stateDir)
  const store = controlStoreOf(await openEnvironment({ folder, mode: 'owner', schema: SCHEMA, maxBytes }), folder)
  if (isKept) return store
  return {
    ...store,
    async close() {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const PASSING = 'control-passing-'

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (cause) {
    // Another user's process answers EPERM.
    return (cause as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/** A fresh one, since several may run beside each other. Those of processes that are gone are removed. */
function passingFolder(stateDir: string): string {
  const base = storeFolder(stateDir)
  if (existsSync(base)) {
    for (const name of readdirSync(base)) {
      const owner = name.startsWith(PASSING) ? Number.parseInt(name.slice(PASSING.length), 10) : Number.NaN
      if (!Number.isNaN(owner) && !isRunning(owner)) rmSync(join(base, name), { recursive: true, force: true })
    }
  }
  mkdirSync(base, { recursive: true, mode: 0o700 })
  return mkdtempSync(join(base, `${PASSING}${process.pid}-`))
}

const taskKey = ({ taskId, generation }: Pick<KeptTask, 'taskId' | 'generation'>): StoreKey => [
  'task',
  taskId,
  generation,
]
const sessionKey = (sessionId: string): StoreKey => ['session', sessionId]
const resultKey = (sessionId: string): StoreKey => ['result', sessionId]
const outboxKey = (deliveryId: string): StoreKey => ['outbox', deliveryId]
const tombstoneKey = (taskId: string): StoreKey => ['tombstone', taskId]

const MAKES_ROOM = { makesRoom: true }

function controlStoreOf(environment: StoreEnvironment, folder: string): ControlStore {
  const all = <T>(kind: string): T[] =>
    [...environment.entries([kind])].map(entry => {
      if ('error' in entry) throw entry.error
      return parsed<T>(entry.value)
    })
  return {
    load: () => ({
      tasks: all<KeptTask>('task').sort((left, right) => left.arrival - right.arrival),
      sessions: all('session'),
      outbox: all('outbox'),
      tombstones: all('tombstone'),
    }),
    putTask: task => environment.commit([put(taskKey(task), task)]),
    putSession: (session, binary = null) =>
      environment.commit([
        put(sessionKey(session.sessionId), session),
        ...(binary === null ? [] : [{ key: resultKey(session.sessionId), value: binary }]),
      ]),
    endTask: (task, outbox) =>
      environment.commit([
        put(taskKey(task), task),
        ...(outbox === null ? [] : [put(outboxKey(outbox.deliveryId), outbox)]),
      ]),
    putOutbox: entry => environment.commit([put(outboxKey(entry.deliveryId), entry)]),
    async settleOutbox(deliveryId, delivery) {
      const removed = { key: outboxKey(deliveryId), value: null }
      const entry = read<KeptOutbox>(environment, outboxKey(deliveryId))
      const task = entry && read<KeptTask>(environment, taskKey(entry))
      await environment.commit([removed, ...(task ? [put(taskKey(task), { ...task, delivery })] : [])], MAKES_ROOM)
    },
    putTombstone: stone => environment.commit([put(tombstoneKey(stone.taskId), stone)]),
    dropTombstone: taskId => environment.commit([{ key: tombstoneKey(taskId), value: null }], MAKES_ROOM),
    async forgetTask(task) {
      const keys: StoreKey[] = [
        taskKey(task),
        ...task.sessionIds.flatMap(sessionId => [sessionKey(sessionId), resultKey(sessionId)]),
        ...(task.deliveryId === null ? [] : [outboxKey(task.deliveryId)]),
      ]
      await environment.commit(
        keys.map(key => ({ key, value: null })),
        MAKES_ROOM,
      )
    },
    resultBytes(sessionId) {
      const bytes = environment.get(resultKey(sessionId))
      if (bytes === null) throw new RolloutError('STORE_DAMAGED', `the result of ${sessionId} is not in ${folder}`)
      return bytes
    },
    close: () => environment.close(),
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const parsed = <T>(bytes: Uint8Array): T => JSON.parse(decoder.decode(bytes)) as T
const put = (key: StoreKey, value: unknown): StoreChange => ({ key, value: encoder.encode(JSON.stringify(value)) })

function read<T>(environment: StoreEnvironment, key: StoreKey): T | null {
  const bytes = environment.get(key)
  return bytes === null ? null : parsed<T>(bytes)
}
