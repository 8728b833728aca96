// The tree says what the actors' own props say.

import t from 'tap'
import { callbackProps } from '../../../actors/callback/actor.js'
import { controlProps } from '../../../actors/control/actor.js'
import { inferenceProps } from '../../../actors/inference/actor.js'
import { proberProps } from '../../../actors/prober/actor.js'
import { reaperProps } from '../../../actors/reaper/actor.js'
import { rolloutProps } from '../../../actors/rollout/actor.js'
import { sessionProps } from '../../../actors/session/actor.js'
import { stagesLimitsOf, stagesProps } from '../../../actors/stages/actor.js'
import { pairThreads } from '../../../actors/threads/pair.js'
import { TREE, type TreeRow, treeText } from '../../../actors/tree.js'
import { NO_PAUSE } from '../../../src/domain/inference.js'
import { planOf } from '../../support/control-fixture.js'

interface Props {
  readonly supervision: {
    readonly restart: string
    readonly strategy: string
    readonly intensity: number
    readonly periodMs: number
  }
  readonly shutdownMs: number
}

/** Nothing is started: props only keep what they are given. */
const unused = null as never
const plan = planOf()
const props: Readonly<Record<string, Props>> = {
  stages: stagesProps(stagesLimitsOf(plan), 1, unused),
  callback: callbackProps({ settings: unused, deps: unused, mailbox: 1 }),
  inference: inferenceProps({ proxies: [], memory: { read: () => NO_PAUSE, write: () => undefined } }, 1),
  reaper: reaperProps({ sessionsDir: '', artifactsMs: 1, everyMs: 1, capacity: 1 }),
  prober: proberProps({ upstreams: [], proxies: [], onStanding: unused, mailbox: 1 }),
  rollout: rolloutProps(unused, 1),
  's-<uuid>': sessionProps(unused),
  control: controlProps({
    plan,
    plugins: unused,
    auth: unused,
    ports: unused,
    encode: unused,
    encodeBinary: unused,
    encodeReference: unused,
  }),
}
const rows = (list: readonly TreeRow[]): readonly TreeRow[] => list.flatMap(row => [row, ...rows(row.children ?? [])])

t.test('every actor of main is in the tree as it is supervised', async t => {
  for (const row of rows(TREE)) {
    const actual = props[row.name]
    if (!actual) continue
    t.equal(actual.supervision.restart, row.restart, row.name)
    t.equal(actual.supervision.strategy, row.strategy, row.name)
    t.equal(actual.shutdownMs, row.shutdownMs, row.name)
    if (row.intensity !== null)
      t.strictSame([actual.supervision.intensity, actual.supervision.periodMs], [row.intensity, row.periodMs], row.name)
  }
  t.strictSame(
    Object.keys(props).filter(name => !rows(TREE).some(row => row.name === name)),
    [],
  )
})

t.test('a pair is in the tree as its host keeps it', async t => {
  const row = rows(TREE).find(one => one.name === 'pair-k')
  const group = pairThreads(plan, 1, 0)
  t.match(group, { strategy: row?.strategy, intensity: row?.intensity, periodMs: row?.periodMs })
  const drainMs = group.threads.reduce((sum, thread) => sum + thread.drainMs, 0)
  t.equal(drainMs, row?.shutdownMs)
})

t.test('the tree prints itself, one line a row, children below their parent', async t => {
  const lines = treeText().split('\n')
  t.equal(lines.length, rows(TREE).length)
  t.match(lines[0], /^control-store: main, no mailbox/)
  t.match(
    lines.find(line => line.startsWith('  ')),
    /^ {2}s-<uuid>: main; one-for-one; temporary; stops within 20 s\./,
  )
})
