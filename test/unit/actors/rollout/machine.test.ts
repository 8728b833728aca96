// The rollout machine: expansion, dispatch, early stop, cancel, drain; each as a short story over a world without a kernel.

import t from 'tap'
import type { SubmitReply } from '../../../../actors/protocol/rollout.js'
import { sessionSpec } from '../../../../actors/rollout/expand.js'
import { rolloutMachine } from '../../../../actors/rollout/machine.js'
import { RolloutWorld, rolloutSettings, sessionResult, taskRequest } from '../../../support/rollout-world.js'
import { localRuntime, recordingRef } from '../../../support/session-fixtures.js'

t.test('a task becomes its samples, and ends when the last one is resolved', async t => {
  const world = new RolloutWorld()
  t.strictSame(world.submit({ num_samples: 3 }), { type: 'task-accepted', taskId: 'task-1', warnings: [] })
  t.equal(world.started.length, 0, 'nothing is pushed to stages that have not asked')
  world.slots(8)
  t.strictSame(world.started, ['s-1', 's-2', 's-3'])
  world.end('s-3')
  world.end('s-1')
  t.match(world.task(), { status: 'running', totalSessions: 3, results: [{ sessionId: 's-1' }, { sessionId: 's-3' }] })
  world.end('s-2', sessionResult('s-2', 0, { status: 'ERROR', error: 'boom' }))
  const task = world.task()
  t.equal(task?.status, 'completed')
  t.strictSame(
    task?.results.map(result => result.sessionId),
    ['s-1', 's-2', 's-3'],
  )
  t.strictSame(task?.resultPaths, ['ses_s-1.json', 'ses_s-2.json', 'ses_s-3.json'])
  t.match(task?.results[0]?.timing, { rollout_dispatch_ms: Number, rollout_pipeline_e2e_ms: Number })
  t.equal(world.list().pendingSessions, 0)
  t.strictSame(
    world.events().filter(type => type.startsWith('task.')),
    ['task.created', 'task.updated', 'task.updated', 'task.updated', 'task.completed'],
  )
})

t.test('while records of a pair cannot be stored no task is taken and no session begun', async t => {
  const world = new RolloutWorld()
  world.submit({ task_id: 'a', num_samples: 2 })
  const error = { code: 'STORE_FULL', message: 'the disk has 0 left' } as const
  world.send({ type: 'intake-set', pair: 2, error })
  world.slots(2)
  t.equal(world.started.length, 0)
  t.match(world.submit({ task_id: 'b' }), { error: { code: 'STORE_FULL', message: /while records cannot be stored/ } })
  t.match(world.submit({ task_id: 'a', num_samples: 2 }), { type: 'task-accepted' }, 'the same task again is known')
  world.send({ type: 'intake-set', pair: 2, error: null })
  t.equal(world.started.length, 2)
  t.match(world.submit({ task_id: 'b' }), { type: 'task-accepted' })
})

t.test('a task whose sessions all failed is completed', async t => {
  const world = new RolloutWorld()
  world.submit({ num_samples: 1 })
  world.slots(1)
  world.end('s-1', sessionResult('s-1', 0, { status: 'ERROR' }))
  t.match(world.task(), { status: 'completed', results: [{ status: 'ERROR' }] })
})

t.test('no more sessions are REGISTERED than stages can take', async t => {
  const world = new RolloutWorld()
  world.submit({ num_samples: 6 })
  world.slots(2)
  t.equal(world.started.length, 2)
  world.slots(2)
  t.equal(world.started.length, 2, 'the count is a level, not an increment')
  world.begin('s-1')
  t.equal(world.started.length, 3)
  world.end('s-2')
  t.equal(world.started.length, 4, 'a session that ends while REGISTERED makes room too')
  world.slots(0)
  world.begin('s-3')
  t.equal(world.started.length, 4)
})

t.test('order: priority, then turns between runs, then first in first out', async t => {
  const world = new RolloutWorld()
  world.submit({ task_id: 'a1', num_samples: 2, metadata: { run_id: 'a' } })
  world.submit({ task_id: 'a2', num_samples: 1, metadata: { run_id: 'a' } })
  world.submit({ task_id: 'b1', num_samples: 3, metadata: { run_id: 'b' } })
  world.submit({ task_id: 'eval', num_samples: 1, dispatch_priority: 100 })
  world.slots(7)
  const order = world.effects.flatMap(effect => (effect.type === 'start-session' ? [effect.spec.taskId as string] : []))
  t.strictSame(order, ['eval', 'a1', 'b1', 'a1', 'b1', 'a2', 'b1'])
})

t.test(
  'submitting again: the same body is the same task, another one a conflict, an ended id a new generation',
  async t => {
    const world = new RolloutWorld()
    world.submit({ metadata: { a: 1, b: [{ c: 2 }] } })
    t.match(world.submit({ metadata: { b: [{ c: 2 }], a: 1 } }), { type: 'task-accepted' })
    t.equal(world.task()?.totalSessions, 1)
    t.match(world.submit({ metadata: { a: 2 } }), { type: 'task-refused', error: { code: 'TASK_CONFLICT' } })
    world.slots(1)
    world.end('s-1')
    t.match(world.submit({ metadata: { a: 2 } }), { type: 'task-accepted' })
    t.match(world.task(), { generation: 2, status: 'running', results: [] })
    t.match(world.task('task-1', 1), { generation: 1, status: 'completed', results: [{ sessionId: 's-1' }] })
    t.equal(world.task('task-1', 3), null)
  },
)

t.test('the queue has its limit', async t => {
  const world = new RolloutWorld({ queuedSessions: 4 })
  world.submit({ task_id: 'a', num_samples: 3 })
  t.match(world.submit({ task_id: 'b', num_samples: 2 }), {
    error: { code: 'TASK_QUEUE_FULL', message: /3 sessions are queued.*no room for 2 more/ },
  })
  world.slots(1)
  t.match(world.submit({ task_id: 'b', num_samples: 2 }), { type: 'task-accepted' })
})

t.test('early stop: enough usable sessions end the group, the rest are flagged and keep their place', async t => {
  const world = new RolloutWorld()
  world.submit({ num_samples: 4, early_stop_min_usable_sessions: 2 })
  world.slots(3)
  world.end('s-1')
  world.end('s-2', sessionResult('s-2', 0))
  t.strictSame(world.cancelled, [], 'a session without trained tokens is not usable')
  world.end('s-3')
  t.strictSame(world.cancelled, ['s-4'], 'the fourth was started when the first ended')
  t.equal(world.task()?.status, 'running', 'the task waits until the cancelled session has let go')
  world.end('s-4', sessionResult('s-4', 5))
  const task = world.task()
  t.equal(task?.status, 'completed')
  t.strictSame(
    task?.results.map(result => result.status),
    ['COMPLETED', 'COMPLETED', 'COMPLETED', 'ERROR'],
  )
  t.match(task?.results[3], {
    error: 'session cancelled',
    trajectory: {
      traces: [],
      metadata: { early_stop_cancelled: true },
      ledger: { tokens: { sampled: 5, trained: 0, setAside: { session_error: 5 } } },
    },
    metadata: {
      early_stop_cancelled: true,
      fully_masked: true,
      reason: 'minimum_usable_sessions_reached',
      early_stop_min_usable_sessions: 2,
      usable_sessions: 2,
      elapsed_ms: Number,
    },
  })
})

t.test('early stop gives up sessions that never began, and still writes their files', async t => {
  const world = new RolloutWorld()
  world.submit({ num_samples: 3, early_stop_min_usable_sessions: 1 })
  world.slots(1)
  world.slots(0)
  world.end('s-1')
  t.match(world.task(), {
    status: 'completed',
    results: [{ status: 'COMPLETED' }, { status: 'ERROR' }, { status: 'ERROR' }],
    resultPaths: ['ses_s-1.json', 'ses_s-2.json', 'ses_s-3.json'],
  })
  t.match(world.list(), { pendingSessions: 0 })
})

t.test('cancel: waiting sessions are dropped, running ones told, and the answer comes when all have ended', async t => {
  const world = new RolloutWorld()
  world.submit({ num_samples: 3, callback_url: 'http://127.0.0.1:1/' })
  world.slots(2)
  world.slots(0)
  const first = world.cancel()
  t.strictSame(first, [])
  t.strictSame(world.cancelled, ['s-1', 's-2'])
  t.equal(world.task()?.status, 'cancelling')
  const second = world.cancel()
  world.end('s-1', sessionResult('s-1', 0, { status: 'ERROR', error: 'session cancelled' }))
  world.end('s-2', sessionResult('s-2', 0, { status: 'ERROR', error: 'session cancelled' }))
  t.match(
    [...first, ...second],
    [
      { type: 'task-found', task: { status: 'cancelled' } },
      { type: 'task-found', task: { status: 'cancelled' } },
    ],
  )
  t.match(world.task(), {
    status: 'cancelled',
    results: [{ sessionId: 's-1' }, { sessionId: 's-2' }, { sessionId: 's-3', error: 'session cancelled' }],
    resultPaths: ['ses_s-1.json', 'ses_s-2.json'],
  })
  t.equal(world.effects.filter(effect => effect.type === 'deliver').length, 1, 'a cancelled task calls back, once')
  t.match(world.cancel(), [{ task: { status: 'cancelled' } }])
})

t.test('cancel of an id that is not known, and its tombstone', async t => {
  const world = new RolloutWorld()
  t.strictSame(world.cancel('nobody'), [{ type: 'task-unknown' }])
  t.match(world.cancel('early', true), [{ type: 'task-found', task: { status: 'cancelled', totalSessions: 0 } }])
  t.match(world.cancel('early', true), [{ type: 'task-found', task: { status: 'cancelled' } }])
  t.match(world.task('early'), { status: 'cancelled', totalSessions: 0 })
  t.match(world.submit({ task_id: 'early' }), {
    error: { code: 'TASK_CONFLICT', message: /cancelled before submission/ },
  })
  const armed = world.effects.filter(effect => effect.type === 'arm-tombstone')
  t.match(armed, [{ afterMs: 300_000 }])
  world.send({ type: 'tombstone-expired', taskId: 'early', stone: armed[0]?.stone ?? 0 })
  t.match(world.submit({ task_id: 'early' }), { type: 'task-accepted' })
})

t.test('a session whose actor dies, or cannot be started, is resolved as an error of ours', async t => {
  const world = new RolloutWorld()
  world.submit({ num_samples: 2 })
  world.slots(2)
  world.send({ type: 'session-gone', sessionId: 's-1', reason: 'crashed' })
  world.send({ type: 'dispatch-failed', sessionId: 's-2', error: { code: 'INTERNAL_BUG', message: 'no room' } })
  t.match(world.task(), {
    status: 'completed',
    results: [
      { status: 'ERROR', failureClass: 'infrastructure', error: /actor ended without a result \(crashed\)/ },
      { status: 'ERROR', failureClass: 'infrastructure', error: /could not be started: no room/ },
    ],
  })
  world.end('s-1')
  world.send({ type: 'session-gone', sessionId: 's-1', reason: 'stopped' })
  t.equal(world.task()?.results.length, 2, 'what comes late changes nothing')
})

t.test('drain: nothing begins any more, what runs goes on, what waits is kept for the next start', async t => {
  const world = new RolloutWorld()
  world.submit({ task_id: 'a', num_samples: 1 })
  world.submit({ task_id: 'b', num_samples: 3 })
  world.slots(2)
  world.slots(0)
  world.send({ type: 'drain-rollout' })
  t.match(world.submit({ task_id: 'c' }), { error: { code: 'SERVICE_STOPPING' } })
  world.slots(5)
  t.equal(world.started.length, 2)
  world.end('s-1')
  t.equal(world.task('a')?.status, 'completed')
  world.send({ type: 'stop-sessions' })
  t.strictSame(world.stopped, ['s-3'], 'of what runs on')
  world.end('s-3', sessionResult('s-3', 1, { status: 'ERROR', error: 'gateway_restarted' }))
  t.match(world.list(), { pendingSessions: 2, activeSessions: 0 })
  t.match(world.task('b'), { status: 'running', results: [{ error: 'gateway_restarted' }] })
  world.restart()
  world.slots(5)
  world.end('s-4')
  world.end('s-5')
  t.match(world.task('b'), {
    status: 'completed',
    results: [{ status: 'ERROR' }, { status: 'COMPLETED' }, { status: 'COMPLETED' }],
  })
})

t.test('killed: what had a result keeps it, what had begun ends, what waited begins', async t => {
  const world = new RolloutWorld()
  world.submit({ num_samples: 3, callback_url: 'http://127.0.0.1:1/' })
  world.slots(2)
  world.end('s-1')
  world.slots(0)
  world.restart()
  t.match(world.task(), {
    status: 'running',
    results: [{ sessionId: 's-1', status: 'COMPLETED' }],
    sessions: [{ status: 'COMPLETED', sampledTokens: 3 }, { status: 'POST_RUN' }, { status: 'POST_RUN' }],
  })
  t.strictSame(world.orphans, ['s-2', 's-3'], 'the third had begun when the first ended')
  t.match(world.list(), { tasks: [{ taskId: 'task-1', status: 'running' }], pendingSessions: 2 })
  world.end('s-2', sessionResult('s-2', 1, { status: 'ERROR', error: 'gateway_restarted' }))
  world.end('s-3', sessionResult('s-3', 1, { status: 'ERROR', error: 'gateway_restarted' }))
  const deliveries = () =>
    world.effects.flatMap(effect => (effect.type === 'deliver' ? [effect.outbox.deliveryId] : []))
  t.match(world.task(), { status: 'completed', delivery: { state: 'pending' } })
  world.restart()
  const [first, second] = deliveries()
  t.equal(deliveries().length, 2)
  t.equal(first, second, 'delivered again under the same id')
  world.acknowledge(first ?? '')
  world.restart()
  t.equal(deliveries().length, 2, 'and not again once a receiver has acknowledged')
  t.match(world.task(), { status: 'completed', delivery: { state: 'delivered' }, results: [{}, {}, {}] })
  t.match(world.submit(), { type: 'task-accepted' })
  t.equal(world.task()?.generation, 2, 'an ended id begins its next generation')
})

t.test('killed in the middle of a cancel: what waited is not begun', async t => {
  const world = new RolloutWorld()
  world.storeAtOnce = false
  world.submit({ num_samples: 3 })
  world.slots(1)
  world.cancel()
  world.restart()
  t.strictSame(world.orphans, ['s-1'])
  world.slots(5)
  t.strictSame(world.started, ['s-1'])
  world.end('s-1')
  world.store()
  t.match(world.task(), { status: 'cancelled', results: [{}, { error: 'session cancelled' }, {}] })
})

t.test('a task is not there before the store has it, and one that it refuses leaves nothing', async t => {
  const { machine, send, submit } = bare()
  const [one, same] = [submit('task-1', 1), submit('task-1', 1)]
  t.match(submit('task-1', 2).told, [{ error: { code: 'TASK_CONFLICT' } }])
  t.strictSame([one.told, same.told], [[], []], 'nobody is answered before it is safe')
  send({ type: 'task-not-stored', taskId: 'task-1', error: { code: 'STORE_FULL', message: 'full' } })
  t.match([one.told, same.told], [[{ error: { code: 'STORE_FULL' } }], [{ error: { code: 'STORE_FULL' } }]])
  t.equal(machine().live.size + machine().accepting.size + machine().queued, 0)
  const again = submit('task-1', 2)
  send({ type: 'task-stored', taskId: 'task-1' })
  t.match(again.told, [{ type: 'task-accepted' }])
})

/** The machine alone: its effects are answered by the test. */
function bare() {
  const machine = rolloutMachine(rolloutSettings)
  let { state } = machine.initial
  const send = (message: Parameters<typeof machine.step>[1]) => {
    const step = machine.step(state, message)
    state = step.state
    for (const effect of step.effects) if (effect.type === 'reply-submit') effect.replyTo.tell(effect.reply)
  }
  return {
    machine: () => state,
    send,
    submit(taskId: string, samples: number) {
      const replyTo = recordingRef<SubmitReply>('/ask/')
      const request = taskRequest({ task_id: taskId, num_samples: samples })
      const sessionIds = Array.from({ length: samples }, (_, index) => `s-${index}`)
      send({ type: 'task-prepared', request, sessionIds, deliveryId: 'd', atMs: 0, replyTo })
      return replyTo
    },
  }
}

t.test('ended tasks are kept up to the limits, but not let go before their delivery has ended', async t => {
  const world = new RolloutWorld({ retainedSessions: 2 })
  const finish = (task_id: string, sessionId: string, callback_url: string | null = null) => {
    world.submit({ task_id, callback_url })
    world.slots(1)
    world.end(sessionId)
  }
  finish('a', 's-1', 'http://127.0.0.1:1/')
  finish('b', 's-3')
  finish('c', 's-5')
  t.strictSame(
    world.list().tasks.map(task => task.taskId),
    ['a', 'c'],
  )
  const deliver = world.effects.find(effect => effect.type === 'deliver')
  world.send({
    type: 'delivery-changed',
    taskId: 'a',
    deliveryId: deliver?.outbox.deliveryId ?? '',
    state: 'undelivered',
    attempts: 3,
    error: 'refused',
  })
  t.strictSame(world.task('a')?.delivery, { state: 'undelivered', attempts: 3, error: 'refused' })
  finish('d', 's-7')
  t.strictSame(
    world.list().tasks.map(task => task.taskId),
    ['c', 'd'],
  )
})

t.test('seeds: the eval base and sampling.seed each count up by sample; the request stays as it was', async t => {
  const evaluation = taskRequest({ metadata: { eval_sampling_seed_base: 1234, agent_timeout: 9 } })
  t.match(sessionSpec(evaluation, localRuntime, 's-1', 1), {
    samplingSeed: 1235,
    agentTimeoutSeconds: 9,
    agent: { settings: { sampling_seed: 1235 } },
    metadata: { eval_sampling_seed_base: 1234, eval_sampling_seed: 1235 },
  })
  t.strictSame(evaluation.agent.settings, {})
  const seeded = taskRequest({ sampling: { seed: { value: 7, mode: 'default' } } })
  t.match(sessionSpec(seeded, localRuntime, 's-1', 2), { samplingSeed: 9, sampling: { seed: { value: 9 } } })
  t.equal(sessionSpec(taskRequest(), localRuntime, 's-1', 2).samplingSeed, null)
})
