// Whatever happens in whatever order, and whenever the process is killed, each session of a task is resolved exactly once, results are in
// sample order, tasks end and are delivered, and no more sessions are REGISTERED than stages can take.

import fc from 'fast-check'
import t from 'tap'
import { RolloutWorld, sessionResult } from '../support/rollout-world.js'

type Action =
  | { readonly do: 'submit'; readonly samples: number; readonly minimum: number | null; readonly priority: number }
  | { readonly do: 'slots'; readonly count: number }
  | { readonly do: 'begin' | 'end' | 'crash' | 'cancel' | 'store'; readonly pick: number; readonly trained: number }
  | { readonly do: 'drain' | 'restart' }

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('submit' as const),
      samples: fc.integer({ min: 1, max: 6 }),
      minimum: fc.option(fc.integer({ min: 1, max: 6 })),
      priority: fc.integer({ min: 0, max: 2 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('slots' as const), count: fc.integer({ min: 0, max: 5 }) }) },
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constantFrom('begin' as const, 'end' as const, 'store' as const),
      pick: fc.nat(20),
      trained: fc.integer({ min: 0, max: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('crash' as const, 'cancel' as const),
      pick: fc.nat(20),
      trained: fc.constant(0),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('drain' as const, 'restart' as const) }) },
)

function run(actions: readonly Action[]): void {
  const world = new RolloutWorld()
  world.storeAtOnce = false
  const tasks: string[] = []
  let slots = 0
  const running = () => [...world.state.active.keys()]
  const registered = () => [...world.state.active.values()].filter(place => place.registered).length
  const pickOf = <T>(list: readonly T[], pick: number): T | undefined => list[pick % Math.max(1, list.length)]
  const act = (step: Action) => {
    const room = Math.max(slots, registered())
    switch (step.do) {
      case 'submit': {
        const taskId = `t-${tasks.length}`
        const reply = world.submit({
          task_id: taskId,
          num_samples: step.samples,
          early_stop_min_usable_sessions: step.minimum === null ? null : Math.min(step.minimum, step.samples),
          dispatch_priority: step.priority,
          callback_url: 'http://127.0.0.1:1/',
        })
        if (reply.type === 'task-accepted') tasks.push(taskId)
        break
      }
      case 'slots':
        slots = step.count
        world.slots(slots)
        break
      case 'begin':
      case 'end':
      case 'crash': {
        const sessionId = pickOf(running(), step.pick)
        if (sessionId === undefined) break
        if (step.do === 'begin') world.begin(sessionId)
        else if (step.do === 'end') world.end(sessionId, sessionResult(sessionId, step.trained))
        else world.send({ type: 'session-gone', sessionId, reason: 'crashed' })
        break
      }
      case 'cancel': {
        const taskId = pickOf(tasks, step.pick)
        if (taskId !== undefined) world.cancel(taskId)
        break
      }
      case 'store':
        world.store()
        break
      case 'drain':
        world.send({ type: 'drain-rollout' })
        break
      case 'restart':
        world.restart()
        slots = 0
        break
    }
    if (registered() > Math.max(slots, room)) throw new Error(`${registered()} REGISTERED, slots ${slots}`)
  }
  for (const step of actions) act(step)
  // Then everything is let go on to its end; what a drain has kept, by the next life.
  if (world.state.draining) world.restart()
  slots = 3
  world.slots(slots)
  for (let turn = 0; turn < 200 && world.state.live.size > 0; turn += 1) {
    for (const sessionId of running()) world.end(sessionId)
    world.store()
  }
  check(world, tasks)
}

function check(world: RolloutWorld, tasks: readonly string[]): void {
  if (new Set(world.stored).size !== world.stored.length) throw new Error('a session was resolved twice')
  if (new Set(world.started).size !== world.started.length) throw new Error('a session was started twice')
  for (const taskId of tasks) {
    const task = world.task(taskId)
    if (!task || (task.status !== 'completed' && task.status !== 'cancelled'))
      throw new Error(`${taskId} ${task?.status}`)
    if (task.results.length !== task.totalSessions) throw new Error(`${taskId}: ${task.results.length} results`)
    if (task.results.some((result, index) => result.sessionId !== task.sessions[index]?.sessionId))
      throw new Error(`${taskId}: out of order`)
  }
  if (world.list().pendingSessions !== 0 || world.state.queued !== 0) throw new Error('sessions are left')
  const delivered = world.effects.flatMap(effect => (effect.type === 'deliver' ? [effect.outbox.deliveryId] : []))
  if (new Set(delivered).size !== tasks.length) throw new Error(`${delivered.length} deliveries of ${tasks.length}`)
  const ends = world.effects.flatMap(effect =>
    effect.type === 'publish' && effect.event.type === 'task.completed' ? [String(effect.event.data['task_id'])] : [],
  )
  if (ends.length !== tasks.length || new Set(ends).size !== tasks.length)
    throw new Error(`${ends.length} ends of ${tasks.length}`)
}

t.test('random histories of tasks keep their promises', async t => {
  fc.assert(fc.property(fc.array(action, { maxLength: 60 }), run), { numRuns: 400 })
  t.pass('400 histories')
})
