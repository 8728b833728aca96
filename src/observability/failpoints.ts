// Named transitions between socket, ledger, store and acknowledgement at which a service can be made to kill itself, to prove that
// whatever follows survives it (scripts/chaos/kill.ts). Armed by `debug.failpoint` of the config alone: `name`, or `name@3` for the
// third time. Not armed, a failpoint costs one comparison.

/** The closed list: where the process ends, in the order that a task passes them. */
export const FAILPOINTS = {
  'submit.parsed': 'a task was read and checked; nothing of it is stored',
  'submit.put': 'the task is on disk; the trainer has no answer',
  'submit.answered': 'the trainer has the answer',
  'session.put': 'the start of a session is on disk; its actor is not there',
  'proxy.answer-complete': "the engine's answer is complete; no record is made",
  'proxy.record-framed': 'the record is encoded; it has not left the proxy',
  'proxy.frame-posted': 'the record is on its way to the merge thread',
  'merge.frame-decoded': 'the merge thread has read a frame',
  'merge.inserted': 'the record is in the ledger',
  'merge.put-issued': 'the record was given to the store',
  'merge.flushed': 'the record is on disk; nobody was told',
  'merge.ack-posted': 'the acknowledgement is on its way to the proxy',
  'proxy.ack-received': 'the proxy knows that the record is safe',
  'proxy.first-held-byte': 'the harness has the first byte that was held back',
  'proxy.finished': 'the harness has its whole answer',
  'session.sealed': "the session's ledger was handed over",
  'session.built': 'the traces are built and judged; rollout does not have the result',
  'session.filed': 'the result file is written; the store does not know of it',
  'session.stored': 'the result is in the store',
  'outbox.put': 'the delivery is in the outbox; it was not tried',
  'callback.attempted': 'the result goes out to its receiver',
  'callback.acknowledged': 'the receiver has acknowledged; the store does not know it',
  'outbox.removed': 'the delivery is out of the outbox',
  'recovery.loaded': 'a start has read what its predecessor left',
  'recovery.swept': 'what the predecessor left running is killed; no session was taken up',
  'recovery.sealed': 'the records of a session that its predecessor ran are read again',
} as const

export type FailpointName = keyof typeof FAILPOINTS

export const FAILPOINT_PATTERN = new RegExp(
  `^(${Object.keys(FAILPOINTS)
    .map(name => name.replace('.', '\\.'))
    .join('|')})(@[1-9]\\d{0,5})?$`,
)

interface Armed {
  readonly name: string
  readonly nth: number
  hits: number
}

/** Of this thread: each thread arms its own, and a name is passed in one kind of thread only. */
let armed: Armed | null = null

/** `spec` as in the config; null disarms. Once at the start of a thread. */
export function armFailpoint(spec: string | null | undefined): void {
  const [name, nth] = (spec ?? '').split('@')
  armed = name === undefined || name === '' ? null : { name, nth: Number(nth ?? 1), hits: 0 }
}

/** Ends the whole process by SIGKILL when `name` is armed and this is the time that was asked for. */
export function failpoint(name: FailpointName): void {
  if (armed !== null && armed.name === name) hit(armed)
}

/** The same once what was written in this turn has gone to the system. null = not armed here. */
export const failpointAfterWrites = (name: FailpointName): Promise<void> | null =>
  armed === null || armed.name !== name
    ? null
    : new Promise(resolve => {
        setImmediate(() => {
          failpoint(name)
          resolve()
        })
      })

function hit(point: Armed): void {
  point.hits += 1
  if (point.hits === point.nth) process.kill(process.pid, 'SIGKILL')
}
