// The rollout actor in the real kernel: session actors as children, their deaths, result files and a disk that takes none.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EMPTY } from 'rxjs'
import t from 'tap'
import type { CallbackMessage } from '../../../../actors/protocol/callback.js'
import type { ControlMessage } from '../../../../actors/protocol/control.js'
import type { SessionMessage, SessionReport } from '../../../../actors/protocol/session.js'
import { rolloutProps } from '../../../../actors/rollout/actor.js'
import { resultPath, writeResult } from '../../../../actors/rollout/files.js'
import type { ActorProps } from '../../../../actors/system/behavior.js'
import { onNextTurn } from '../../../../actors/system/clock.js'
import type { ActorRef } from '../../../../actors/system/ref.js'
import { resultBinary, resultJson } from '../../../../src/api/stored-result.js'
import type { TaskRequest } from '../../../../src/domain/task.js'
import { openControlStore } from '../../../../src/store/control-store.js'
import { rolloutSettings, sessionResult, taskRequest } from '../../../support/rollout-world.js'
import { createTestSystem } from '../../../support/test-system.js'

/** A session that ends well, or crashes, as soon as it is cancelled. */
function standIn(
  sessionId: string,
  rollout: ActorRef<SessionReport>,
  crash: boolean,
): ActorProps<SessionMessage, SessionMessage, { readonly done: boolean }, 'end'> {
  return {
    behavior: () => ({
      machine: {
        initial: { state: { done: false }, effects: [] },
        step(state, message) {
          if (message.type !== 'cancel-session') return { state, effects: [] }
          if (crash) throw new Error('a bug')
          return { state: { done: true }, effects: ['end'] }
        },
        scope: () => 'open',
        done: state => state.done,
      },
      interpret: () => () => {
        rollout.tell({ type: 'session-ended', sessionId: sessionId as never, result: sessionResult(sessionId, 2) })
        return EMPTY
      },
      onEffectError: () => ({ type: 'cancel-session', reason: '' }),
    }),
    mailbox: { capacity: 10, overflow: 'refuse' },
    supervision: { restart: 'temporary', strategy: 'one-for-one', intensity: 0, periodMs: 1_000 },
    shutdownMs: 1_000,
  }
}

async function world(t: Parameters<typeof createTestSystem>[0], saveDir: string | null, crash = false) {
  const { system, clock, probe, log } = createTestSystem(t)
  const control = probe<ControlMessage>('control')
  const callback = probe<CallbackMessage>('callback')
  const store = await openControlStore({ stateDir: folder(t), maxBytes: 2 ** 28, tasks: 'kept' })
  t.teardown(() => store.close())
  const released: { readonly sessionId: string; readonly pair: number; readonly isStored: boolean }[] = []
  const rollout = system.spawn(
    rolloutProps(
      {
        store,
        now: () => clock.now(),
        placeSession: () => 1,
        releaseRecords(sessionId, pair) {
          const kept = store.load().sessions.find(session => session.sessionId === sessionId)
          released.push({ sessionId, pair, isStored: kept !== undefined && kept.result !== null })
        },
        settings: rolloutSettings,
        saveDir,
        encode: resultJson,
        encodeBinary: resultBinary,
        encodeReference: ({ sessionId }, generation) => JSON.stringify({ session_id: sessionId, generation }),
        callback: callback.ref,
        control: control.ref,
        startSession: (spawn, { spec }, self) => spawn(standIn(spec.sessionId, self, crash), spec.sessionId),
      },
      64,
    ),
    'rollout',
  )
  const submit = async (samples: number, over: Partial<TaskRequest> = {}) => {
    rollout.tell({ type: 'init-slots-free', count: 8 })
    const request = taskRequest({ num_samples: samples, callback_url: 'http://127.0.0.1:1/', ...over })
    return await system.ask(rollout, { type: 'task-submit-requested', request }, 1_000)
  }
  const cancel = async () => {
    const asked = system.ask(
      rollout,
      { type: 'task-cancel-requested', taskId: 'task-1', registerIfMissing: false },
      // Of virtual time, which goes on while the disk works in real time.
      1_000_000_000,
    )
    // Files are written in real time while the waits between attempts are virtual.
    let answered = false
    const settled = () => {
      answered = true
    }
    asked.then(settled, settled)
    while (!answered) {
      await clock.advance(100)
      await new Promise<void>(onNextTurn)
    }
    const reply = await asked
    if (reply.type === 'task-unknown') throw new Error('unknown')
    return reply.task
  }
  return { submit, cancel, control, callback, log, system, released }
}

function folder(t: Parameters<typeof createTestSystem>[0]): string {
  const path = mkdtempSync(join(tmpdir(), 'sextant-rollout-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

t.test('sessions are children, their results are files, and the callback gets the same', async t => {
  const saveDir = join(folder(t), 'results')
  const { submit, cancel, callback, system, released } = await world(t, saveDir)
  t.match(await submit(2), { type: 'task-accepted' })
  t.match(system.inspect(), { actors: [{}, {}, { summary: { active: 2, queued: 0 } }] })
  const task = await cancel()
  t.equal(task.status, 'cancelled')
  t.equal(task.resultPaths.length, 2)
  for (const [index, path] of task.resultPaths.entries()) {
    const result = task.results[index] ?? sessionResult('', 0)
    const { sessionId } = result
    t.equal(path, resultPath(saveDir, 'task-1', sessionId))
    t.equal(readFileSync(path, 'utf8'), resultJson(result))
    t.equal(statSync(path).mode & 0o777, 0o600)
    const binary = readFileSync(path.replace(/json$/, 'sxr'))
    t.equal(resultJson({ sessionId, binary }), resultJson(result), 'the binary form lies beside it')
    t.match(sessionId, /^s-[0-9a-f]{8}-[0-9a-f]{4}-4/)
  }
  t.strictSame(released.map(({ sessionId }) => sessionId).sort(), task.results.map(({ sessionId }) => sessionId).sort())
  t.ok(
    released.every(({ pair, isStored }) => pair === 1 && isStored),
    'records may go only when the result is on disk',
  )
  const delivery = await callback.expectMessage('deliver-result', 1_000)
  t.match(JSON.parse(delivery.body), { task_id: 'task-1', status: 'cancelled' })
  t.strictSame(
    JSON.parse(delivery.body).results,
    task.results.map(result => JSON.parse(resultJson(result))),
    'read from disk, it is the same to the byte',
  )
})

t.test('a callback that asked for references holds no result', async t => {
  const { submit, cancel, callback } = await world(t, null)
  await submit(2, { callback_results: 'references' })
  const { results } = await cancel()
  const { body } = await callback.expectMessage('deliver-result', 1_000)
  t.strictSame(
    JSON.parse(body).results,
    results.map(({ sessionId }) => ({ session_id: sessionId, generation: 1 })),
  )
})

t.test('a session actor that crashes is a result that says so', async t => {
  const { submit, cancel } = await world(t, null, true)
  await submit(1)
  t.match(await cancel(), {
    status: 'cancelled',
    results: [{ status: 'ERROR', failureClass: 'infrastructure', error: /ended without a result \(crashed\)/ }],
  })
})

t.test('a disk that takes no file: tried again, reported, and the task ends all the same', async t => {
  const blocked = join(folder(t), 'file')
  writeFileSync(blocked, '')
  const { submit, cancel, log } = await world(t, join(blocked, 'results'))
  await submit(1)
  const task = await cancel()
  t.match(task, { status: 'cancelled', results: [{ status: 'COMPLETED' }], resultPaths: [] })
  t.equal(log.lines.filter(line => line.event === 'result-write-fail').length, 1)
})

t.test('a file is there as a whole or not at all, also where a disk has room for half of it', async t => {
  const base = folder(t)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'sextant-test', base]).status === 0
  if (!mounted) t.comment('no tmpfs can be mounted here: the full disk is left out')
  else t.teardown(() => spawnSync('umount', [base]))
  const saveDir = join(base, 'a', 'b')
  const small = { json: '{}', binary: Buffer.from('x') }
  const path = await writeResult(saveDir, 'task-1', 's-1', small)
  if (mounted) {
    await t.rejects(writeResult(saveDir, 'task-1', 's-1', { json: 'x'.repeat(300_000), binary: null }), {
      code: 'ENOSPC',
    })
    await t.rejects(writeResult(saveDir, 'task-1', 's-2', { json: 'x'.repeat(300_000), binary: null }), {
      code: 'ENOSPC',
    })
  }
  t.equal(readFileSync(path, 'utf8'), '{}', 'what was there is unchanged')
  t.strictSame(readdirSync(join(saveDir, 'task_task-1')).sort(), ['ses_s-1.json', 'ses_s-1.sxr'])
  writeFileSync(`${path}.tmp`, 'left by a killed process, longer than the result')
  t.equal(readFileSync(await writeResult(saveDir, 'task-1', 's-1', small), 'utf8'), '{}')
})

t.test('ids that are no path elements never reach the file system', async t => {
  t.throws(() => resultPath('/save', 'a/../../etc', 's-1'), { code: 'RUNTIME_PATH_REFUSED' })
  t.throws(() => resultPath('/save', 'a', '..'), { code: 'RUNTIME_PATH_REFUSED' })
})
