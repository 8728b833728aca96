// The supervision tree as data: what is started, where, in which order, how it is restarted and how long it may take to stop.
// service.ts starts it in this order and stops it in reverse; a test compares the rows with the actors' own props.

export interface TreeRow {
  readonly name: string
  readonly where: string
  readonly strategy: 'one-for-one' | 'rest-for-one'
  readonly restart: 'permanent' | 'temporary'
  /** Restarts allowed in `periodMs`; null = never restarted. */
  readonly intensity: number | null
  readonly periodMs: number | null
  /** Deadline of a stop. */
  readonly shutdownMs: number
  readonly why: string
  readonly children?: readonly TreeRow[]
}

export const TREE = [
  {
    name: 'control-store',
    where: 'main, no mailbox',
    strategy: 'rest-for-one',
    restart: 'temporary',
    intensity: null,
    periodMs: null,
    shutdownMs: 10_000,
    why: 'tasks, sessions that began, results, outbox: opened before all, closed after all',
  },
  {
    name: 'simulation',
    where: 'thread simulation, when configured',
    strategy: 'one-for-one',
    restart: 'permanent',
    intensity: 5,
    periodMs: 30_000,
    shutdownMs: 5_000,
    why: 'the embedded inference server; long prompts hold up nobody else',
  },
  {
    name: 'pair-k',
    where: 'threads merge-k, then proxy-k',
    strategy: 'rest-for-one',
    restart: 'permanent',
    intensity: 5,
    periodMs: 30_000,
    shutdownMs: 25_000,
    why: 'serves the model API and keeps what was captured; a proxy restarts alone, a dead merge takes its proxy with it',
  },
  {
    name: 'inference',
    where: 'main',
    strategy: 'one-for-one',
    restart: 'permanent',
    intensity: 5,
    periodMs: 60_000,
    shutdownMs: 5_000,
    why: 'pauses and resumes the model calls of all proxies together',
  },
  {
    name: 'prober',
    where: 'main',
    strategy: 'one-for-one',
    restart: 'permanent',
    intensity: 5,
    periodMs: 60_000,
    shutdownMs: 5_000,
    why: 'probes inference servers in the background; until one has passed, nothing of it is trained on',
  },
  {
    name: 'reaper',
    where: 'main',
    strategy: 'one-for-one',
    restart: 'permanent',
    intensity: 5,
    periodMs: 60_000,
    shutdownMs: 5_000,
    why: 'removes what dead sessions left, before any other begins and on a timer',
  },
  {
    name: 'stages',
    where: 'main, with three pools of threads',
    strategy: 'one-for-one',
    restart: 'permanent',
    intensity: 5,
    periodMs: 60_000,
    shutdownMs: 30_000,
    why: 'owns the INIT, RUNNING and POSTRUN pools and the READY buffer',
  },
  {
    name: 'callback',
    where: 'main',
    strategy: 'one-for-one',
    restart: 'permanent',
    intensity: 5,
    periodMs: 60_000,
    shutdownMs: 5_000,
    why: 'delivers results; a receiver that stays away holds up nothing',
  },
  {
    name: 'rollout',
    where: 'main',
    strategy: 'one-for-one',
    restart: 'permanent',
    intensity: 5,
    periodMs: 60_000,
    shutdownMs: 25_000,
    why: 'owns tasks; sessions are its children and end before it',
    children: [
      {
        name: 's-<uuid>',
        where: 'main',
        strategy: 'one-for-one',
        restart: 'temporary',
        intensity: null,
        periodMs: null,
        shutdownMs: 20_000,
        why: 'one session; never restarted in place',
      },
    ],
  },
  {
    name: 'control',
    where: 'main',
    strategy: 'one-for-one',
    restart: 'permanent',
    intensity: 5,
    periodMs: 60_000,
    shutdownMs: 5_000,
    why: 'the HTTP port for trainers: the last to open, the first to close',
  },
] as const satisfies readonly TreeRow[]

/** The tree as text, one line a row, in order of start. */
export function treeText(rows: readonly TreeRow[] = TREE, indent = ''): string {
  return rows
    .map(row => {
      const restarts =
        row.intensity === null ? row.restart : `${row.restart}, ${row.intensity} in ${(row.periodMs ?? 0) / 1000} s`
      const line = `${indent}${row.name}: ${row.where}; ${row.strategy}; ${restarts}; stops within ${row.shutdownMs / 1000} s. ${row.why}`
      return row.children ? `${line}\n${treeText(row.children, `${indent}  `)}` : line
    })
    .join('\n')
}
