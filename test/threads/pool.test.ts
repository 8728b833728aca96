// Pools on real threads: co-hosting, reports, cancels, deaths.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { hostingOf, openPool, type Pool } from '../../actors/pools/pool.js'
import type { TaskReport } from '../../actors/pools/task.js'
import { projectRoot } from '../support/paths.js'
import { testPlan } from '../support/plan.js'

interface Job {
  readonly do: 'wait' | 'answer' | 'throw'
  readonly ids?: Int32Array
}
interface Answer {
  readonly threadId: number
  readonly ended?: string
  readonly ids?: number | null
  readonly options?: string | null
  readonly loadedBy?: string
}

const taskFile = (name: string) => pathToFileURL(join(projectRoot, 'test/fixtures/pool-tasks', `${name}.mjs`)).href

function pool(t: Test, over: { threads?: number; tasksPerThread?: number; maxQueue?: number; file?: string } = {}) {
  const made: Pool<Job, Answer> = openPool<Job, Answer>({
    taskFile: taskFile(over.file ?? 'patient'),
    threads: over.threads ?? 1,
    tasksPerThread: over.tasksPerThread ?? 1,
    maxQueue: over.maxQueue ?? 10,
    data: { plan: testPlan('/var/tmp/none') },
    onIdleDeath: cause => t.fail(`idle thread died: ${cause.message}`),
  })
  t.teardown(() => made.close())
  return made
}

/** Starts a task and waits until it says that it runs. */
async function running(of: Pool<Job, Answer>, job: Job) {
  let said: () => void = () => {}
  const started = new Promise<void>(resolve => {
    said = resolve
  })
  const run = of.run(job, (report: TaskReport) => report.type === 'run-progress' && said())
  // A task may end before its first report is heard.
  await Promise.race([started, run.result.catch(() => undefined)])
  return run
}

t.test('one thread hosts many runs at once, each with a cancel of its own', async t => {
  const one = pool(t, { tasksPerThread: 4 })
  const runs = [
    await running(one, { do: 'wait' }),
    await running(one, { do: 'wait' }),
    await running(one, { do: 'wait' }),
  ]
  runs[1]?.cancel()
  const second = await runs[1]?.result
  t.match(second, { ended: 'cancel' })
  runs[0]?.cancel()
  runs[2]?.cancel()
  const threads = new Set((await Promise.all(runs.map(run => run.result))).map(answer => answer.threadId))
  t.equal(threads.size, 1)
})

t.test('a cancel that comes before the task starts is not lost', async t => {
  const one = pool(t)
  const first = await running(one, { do: 'wait' })
  const queued = one.run({ do: 'wait' }, () => {})
  queued.cancel()
  first.cancel()
  t.match(await queued.result, { ended: 'cancel' })
})

t.test('typed arrays that own their buffer are moved, and the thread has no options of ours', async t => {
  const ids = new Int32Array(1000)
  const answer = await pool(t).run({ do: 'answer', ids }, () => {}).result
  t.match(answer, { ids: 1000, options: '' })
  // `require` loads it in one step, and a thread ended within that step takes the process along.
  t.match(answer, { loadedBy: 'import' })
  t.equal(ids.length, 0)
})

t.test('an uncaught throw ends every run of its thread, and the pool goes on', async t => {
  const one = pool(t, { tasksPerThread: 2 })
  const neighbour = await running(one, { do: 'wait' })
  const bad = await running(one, { do: 'throw' })
  await t.rejects(neighbour.result)
  await t.rejects(bad.result)
  const after = await running(one, { do: 'wait' })
  after.cancel()
  t.match(await after.result, { ended: 'cancel' })
})

t.test('a killed thread rejects what ran on it and is replaced', async t => {
  const one = pool(t, { threads: 2 })
  const lost = await running(one, { do: 'wait' })
  const other = await running(one, { do: 'wait' })
  t.ok(one.killThread(1))
  t.ok(one.killThread(2))
  await t.rejects(lost.result)
  await t.rejects(other.result)
  t.notOk(one.killThread(3), 'there is no third')
  t.type((await one.run({ do: 'answer' }, () => {}).result).threadId, 'number')
})

t.test('a task that hears no cancel is ended with its thread, where it is alone on it', async t => {
  const one = pool(t, { file: 'deaf' })
  const run = one.run({ do: 'wait' }, () => {})
  run.cancel()
  run.end()
  await t.rejects(run.result)
})

t.test('the queue of a pool has a limit', async t => {
  const one = pool(t, { maxQueue: 1 })
  const first = await running(one, { do: 'wait' })
  const second = one.run({ do: 'wait' }, () => {})
  const third = one.run({ do: 'wait' }, () => {})
  await t.rejects(third.result, /holds 2 tasks, its limit/)
  first.cancel()
  second.cancel()
  await Promise.all([first.result, second.result])
})

t.test('RUNNING is spread over two threads at least', t => {
  t.strictSame(hostingOf(1), { threads: 1, tasksPerThread: 2 })
  t.strictSame(hostingOf(2), { threads: 2, tasksPerThread: 2 })
  t.strictSame(hostingOf(64), { threads: 4, tasksPerThread: 16 })
  t.end()
})
