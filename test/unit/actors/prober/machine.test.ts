// When an upstream is probed, and what is told of it meanwhile.

import t from 'tap'
import {
  type ProberEffect,
  type ProberInput,
  type ProberState,
  proberMachine,
} from '../../../../actors/prober/machine.js'
import { upstreamStandings } from '../../../../actors/prober/standings.js'
import { UNKNOWN_FACTS } from '../../../../src/upstreams/probe/report.js'
import type { ProbeReport } from '../../../../src/upstreams/probe.js'
import { testPlan } from '../../../support/plan.js'

const report = (verdict: ProbeReport['verdict'], reasons: readonly string[] = []): ProbeReport => ({
  urls: ['http://x'],
  profile: 'vllm',
  model: 'm',
  verdict,
  reasons,
  findings: [],
  facts: UNKNOWN_FACTS,
  calls: 1,
  durationMs: 1,
})

function running(ids: readonly string[]) {
  const machine = proberMachine(ids)
  let state: ProberState = machine.initial.state
  return {
    first: machine.initial.effects,
    tell(message: ProberInput): readonly ProberEffect[] {
      const next = machine.step(state, message)
      state = next.state
      return next.effects
    },
    of: (id: string) => state.upstreams[id],
  }
}
const done = (verdict: ProbeReport['verdict'], reasons?: readonly string[]): ProberInput => ({
  type: 'probe-done',
  upstream: 'a',
  report: report(verdict, reasons),
})
const published = (effects: readonly ProberEffect[]) =>
  effects.flatMap(effect => (effect.type === 'publish' ? [effect.standing.obstacle] : []))
const types = (effects: readonly ProberEffect[]) => effects.map(({ type }) => type)

t.test('every upstream is probed at the start, and trainable only once its probe says so', t => {
  const prober = running(['a', 'b'])
  t.strictSame(prober.first, [
    { type: 'probe', upstream: 'a' },
    { type: 'probe', upstream: 'b' },
  ])
  t.equal(prober.of('a')?.obstacle, 'upstream_not_probed')
  t.strictSame(published(prober.tell(done('trainable'))), [null])
  t.equal(prober.of('b')?.obstacle, 'upstream_not_probed', 'the other one is not')
  t.end()
})

t.test('a probe that does not pass leaves evaluation only, and is not repeated by itself', t => {
  const prober = running(['a'])
  const effects = prober.tell(done('evaluation_only', ['no_token_ids']))
  t.strictSame(types(effects), ['log', 'publish'])
  t.strictSame(published(effects), ['upstream_evaluation_only'])
  t.end()
})

t.test('an upstream that cannot be reached is probed again, after waits that grow to a minute', t => {
  const prober = running(['a'])
  const waits: number[] = []
  for (let turn = 0; turn < 9; turn += 1) {
    const effects = prober.tell(done('unreachable', ['unreachable']))
    t.strictSame(published(effects), ['upstream_not_probed'])
    for (const effect of effects) if (effect.type === 'arm-timer') waits.push(effect.afterMs)
    t.strictSame(types(prober.tell({ type: 'probe-due', upstream: 'a' })), ['probe'])
  }
  t.strictSame(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
  t.strictSame(published(prober.tell(done('trainable'))), [null])
  t.equal(prober.of('a')?.failures, 0)
  t.end()
})

t.test('an upstream that was lost is not trained on until it is probed anew', t => {
  const prober = running(['a'])
  prober.tell(done('trainable'))
  const lost = prober.tell({ type: 'upstream-lost', upstream: 'a' })
  t.strictSame(published(lost), ['upstream_not_probed'])
  t.match(lost, [{ type: 'arm-timer' }, { type: 'publish' }])
  t.strictSame(prober.tell({ type: 'upstream-lost', upstream: 'a' }), [], 'once is enough')
  t.strictSame(types(prober.tell({ type: 'probe-due', upstream: 'a' })), ['probe'])
  t.strictSame(published(prober.tell(done('trainable'))), [null])
  t.end()
})

t.test('the result of a probe during which the upstream was lost counts for nothing', t => {
  const prober = running(['a'])
  t.strictSame(prober.tell({ type: 'upstream-lost', upstream: 'a' }), [])
  const effects = prober.tell(done('trainable'))
  t.strictSame(published(effects), ['upstream_not_probed'])
  t.ok(types(effects).includes('arm-timer'))
  t.end()
})

t.test('a probe that ran out of time, or failed by a fault of ours, is repeated', t => {
  const prober = running(['a'])
  const late = prober.tell(done('evaluation_only', ['probe_unfinished']))
  t.strictSame(published(late), ['upstream_evaluation_only'])
  t.ok(types(late).includes('arm-timer'))
  prober.tell({ type: 'probe-due', upstream: 'a' })
  const failed = prober.tell({ type: 'probe-failed', upstream: 'a', error: { code: 'INTERNAL_BUG', message: 'no' } })
  t.strictSame(types(failed), ['log-failure', 'arm-timer', 'publish'])
  t.end()
})

t.test('a proxy that starts anew is told how all stand; messages about others change nothing', t => {
  const prober = running(['a', 'b'])
  prober.tell(done('trainable'))
  t.strictSame(published(prober.tell({ type: 'publish-requested' })), [null, 'upstream_not_probed'])
  t.strictSame(prober.tell({ type: 'upstream-lost', upstream: 'other' }), [])
  t.strictSame(prober.tell({ type: 'probe-due', upstream: 'a' }), [], 'nothing is due')
  t.strictSame(prober.tell(done('evaluation_only')), [], 'no probe runs')
  t.end()
})

t.test('standings from outside: off, not probed, and as the last probe says', t => {
  const { upstreams } = testPlan('/nonexistent')
  const [main] = upstreams
  if (main === undefined) throw new Error('wanted an upstream')
  const standings = upstreamStandings({ upstreams: [main, { ...main, id: 'a', probe: 'start' }] })
  const verdicts = () => standings.upstreams().map(({ id, verdict }) => [id, verdict])
  t.strictSame(standings.obstacles(), { a: 'upstream_not_probed' })
  t.strictSame(verdicts(), [
    ['main', 'off'],
    ['a', 'not_probed'],
  ])
  standings.note({ upstream: 'a', obstacle: null, report: report('trainable') })
  t.strictSame(verdicts()[1], ['a', 'trainable'])
  standings.note({ upstream: 'a', obstacle: 'upstream_not_probed', report: report('trainable') })
  t.strictSame(verdicts()[1], ['a', 'not_probed'], 'lost since')
  standings.note({ upstream: 'a', obstacle: 'upstream_not_probed', report: report('unreachable') })
  t.strictSame(verdicts()[1], ['a', 'unreachable'])
  t.end()
})
