// The reaper: when it sweeps, and what a sweep takes and leaves. With real folders and processes.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { ReaperMessage, SweepReport } from '../../../../actors/protocol/reaper.js'
import type { SessionMessage } from '../../../../actors/protocol/session.js'
import { reaperProps } from '../../../../actors/reaper/actor.js'
import { reaperMachine } from '../../../../actors/reaper/machine.js'
import { sweep } from '../../../../actors/reaper/sweep.js'
import { realClock } from '../../../../actors/system/clock.js'
import { scratchFolder } from '../../../support/local-runtime.js'
import { recordingRef, sessionId } from '../../../support/session-fixtures.js'
import { createRealTimeSystem } from '../../../support/test-system.js'
import { wallClock } from '../../../support/wall-clock.js'

const report: SweepReport = { type: 'sweep-report', processes: 1, proven: true, folders: 2, expired: 3 }

t.test('it sweeps at the start, then a pause after each end, never twice at once', t => {
  const machine = reaperMachine(1000)
  t.strictSame(machine.initial.effects, [{ type: 'sweep' }])
  const asker = recordingRef<SweepReport>('/asker/')
  const asked = machine.step(machine.initial.state, { type: 'sweep-requested', replyTo: asker })
  t.strictSame(asked.effects, [], 'the running sweep began before the question')
  const again = machine.step(asked.state, { type: 'sweep-done', report })
  t.strictSame(again.effects, [{ type: 'sweep' }])
  t.not(machine.scope(again.state), machine.scope(asked.state), 'a sweep of its own scope')
  const done = machine.step(again.state, { type: 'sweep-done', report })
  t.match(done.effects, [{ type: 'reply' }, { type: 'arm-timer', afterMs: 1000 }])
  t.match(done.state.totals, { sweeps: 2, processes: 2, folders: 4, expired: 6, failures: 0 })
  const due = machine.step(done.state, { type: 'sweep-due' })
  t.strictSame(due.effects, [{ type: 'sweep' }])
  const failed = machine.step(due.state, { type: 'sweep-failed', error: { code: 'INTERNAL_BUG', message: 'no' } })
  t.match(failed.effects, [{ type: 'arm-timer' }])
  t.equal(failed.state.totals.failures, 1)
  t.end()
})

async function session(folder: string, name: string): Promise<string> {
  const dir = join(folder, name)
  for (const part of ['workspace', 'home', 'artifacts', 'logs']) await mkdir(join(dir, part), { recursive: true })
  await writeFile(join(dir, 'workspace', 'file'), 'x')
  return dir
}

t.test('folders of dead sessions lose their work, expired ones go, live ones stay', async t => {
  const folder = scratchFolder(t)
  const dead = await session(folder, 's-dead')
  const old = await session(folder, 's-old')
  const live = await session(folder, 's-live')
  await utimes(old, new Date(0), new Date(0))
  await utimes(live, new Date(0), new Date(0))
  const input = { sessionsDir: folder, isLive: (id: string) => id === 's-live', artifactsMs: 60_000, clock: wallClock }
  t.match(await sweep(input), { processes: 0, folders: 1, expired: 1 })
  t.strictSame((await readdir(folder)).sort(), ['s-dead', 's-live'])
  t.strictSame((await readdir(dead)).sort(), ['artifacts', 'logs'])
  t.equal((await readdir(live)).length, 4)
  t.match(await sweep(input), { folders: 0, expired: 0 }, 'a second sweep finds nothing')
})

t.test('without a state folder there is nothing to do', async t => {
  const input = {
    sessionsDir: '/var/tmp/sextant-no-such-folder',
    isLive: () => false,
    artifactsMs: 1,
    clock: wallClock,
  }
  t.match(await sweep(input), { processes: 0, proven: true, folders: 0, expired: 0 })
})

t.test('processes of a session whose actor has ended are killed; those of a live one are not', async t => {
  const folder = scratchFolder(t)
  const sleeper = (name: string) => {
    const env = { SEXTANT_SESSION: name, SESSION_DIR: join(folder, name), PATH: process.env.PATH ?? '/usr/bin:/bin' }
    const child = spawn('sleep', ['600'], { env, detached: true, stdio: 'ignore' })
    t.teardown(() => child.kill('SIGKILL'))
    return child
  }
  const orphan = sleeper('s-orphan')
  const living = sleeper('s-living')
  const orphanExit = once(orphan, 'exit')
  const { system, probe } = createRealTimeSystem(t, realClock())
  const props = reaperProps({ sessionsDir: folder, artifactsMs: 60_000, everyMs: 600_000, capacity: 100 })
  const livingSession = probe<SessionMessage>('s-living')
  const reaper = system.spawn(props, 'reaper')
  reaper.tell({ type: 'session-lives', sessionId: sessionId('s-living'), session: livingSession.ref })
  const swept = await system.ask<ReaperMessage, { type: 'sweep-requested' }>(
    reaper,
    { type: 'sweep-requested' },
    30_000,
  )
  await orphanExit
  t.equal(swept.proven, true)
  t.equal(living.exitCode, null)
  t.equal(living.signalCode, null)
  const livingExit = once(living, 'exit')
  await system.stopActor(livingSession.ref)
  await system.ask<ReaperMessage, { type: 'sweep-requested' }>(reaper, { type: 'sweep-requested' }, 30_000)
  await livingExit
  t.ok(true, 'once its actor had ended it was killed too')
})
