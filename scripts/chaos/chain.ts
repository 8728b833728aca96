// A chain of lives of one service on one stateDir: tasks are submitted, the process is killed, the next one starts on what it left. At the
// end of a chain the last life is let go on until everything is delivered, and all of it is verified.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { realClock } from '../../actors/system/clock.js'
import type { Connection } from '../../src/cli/connection.js'
import { exampleTask } from '../../src/cli/quickstart/example.js'
import { errorData } from '../../src/domain/errors.js'
import { isObject } from '../../src/domain/json.js'
import type { FailpointName } from '../../src/observability/failpoints.js'
import { loadTokenizer } from '../../src/tokenizer/tokenizer.js'
import { type ChaosEngine, chaosEngine } from './engine.js'
import { chaosReceiver, type Receiver } from './receiver.js'
import { type KillableService, startKillable } from './service.js'
import { type Figures, verify } from './verify.js'

const clock = realClock()
/** A life that has not done its part by then is a failure. */
const LIFE_MS = 60_000
const SETTLE_MS = 120_000
/** Calls of a session at the most. Some are so short that they end, and are delivered, before a life does. */
const TURNS = 9
/** A life whose sessions have ended gives no more answers. */
const QUIET_MS = 1_500
const SAMPLES = 2

export interface Chain {
  /** One life that is killed `ms` after its start, or after it was ready and had its tasks and the engine gave so many answers more. */
  killedAt(ms: number, from: 'start' | { readonly answers: number }): Promise<void>
  /** One life that kills itself there. Throws when it does not. */
  killedBy(name: FailpointName, nth: number): Promise<void>
  /** Lets the last life go on to the end, and verifies. */
  settle(): Promise<Figures>
  close(): Promise<void>
}

export interface ChainOptions {
  /** 0 to 1. */
  readonly random: () => number
  /** A real CLI from the cache on the embedded simulation, in place of the small agent on an engine that lives through the kills. */
  readonly harness?: { readonly id: string; readonly cacheDir: string }
}

export async function openChain({ random, harness }: ChainOptions): Promise<Chain> {
  const folder = mkdtempSync(join(tmpdir(), 'sextant-chaos-'))
  const folders = {
    home: join(folder, 'home'),
    stateDir: join(folder, 'state'),
    ...(harness && { cacheDir: harness.cacheDir }),
  }
  const agentLog = join(folder, 'agent.log')
  const engine: ChaosEngine | null = harness ? null : await chaosEngine(random)
  const receiver: Receiver = await chaosReceiver()
  const accepted = new Map<string, number>()
  /** Submitted without an answer: the next life says whether it has them. */
  const unanswered = new Set<string>()
  let lives = 0
  let service: KillableService | null = null

  const harnessTask = async (taskId: string, id: string) => ({
    ...(await exampleTask('fix-calculator', { taskId, harness: id, samples: SAMPLES, seed: lives })),
    callback_url: receiver.url,
  })
  const agentTask = (taskId: string) => ({
    task_id: taskId,
    instruction: `Mark, ${taskId}.`,
    num_samples: SAMPLES,
    timeout_seconds: 120,
    runtime: {
      backend: 'local',
      prepare: [
        {
          type: 'upload_file',
          source: join(process.cwd(), 'test/fixtures/agents/chaos-agent.mjs'),
          target: 'agent.mjs',
        },
      ],
    },
    agent: {
      harness: 'shell',
      custom_shell: {
        command: `exec ${JSON.stringify(process.execPath)} agent.mjs`,
        env: { AGENT_LOG: agentLog, AGENT_TURNS: String(1 + Math.floor(random() ** 2 * TURNS)) },
      },
    },
    builder: { strategy: 'prefix_merging' },
    callback_url: receiver.url,
  })

  async function submit(connection: Connection, taskId: string): Promise<void> {
    unanswered.add(taskId)
    await connection.submit(harness ? await harnessTask(taskId, harness.id) : agentTask(taskId))
    unanswered.delete(taskId)
    accepted.set(taskId, SAMPLES)
  }

  /** Every accepted task is known to this life; what got no answer is known or submitted again. */
  async function takeUp(connection: Connection): Promise<void> {
    for (const taskId of accepted.keys()) await connection.task(taskId)
    for (const taskId of [...unanswered]) {
      const isKnown = await connection.task(taskId).then(
        () => true,
        cause => {
          if (errorData(cause).code === 'TASK_UNKNOWN') return false
          throw cause
        },
      )
      if (isKnown) {
        unanswered.delete(taskId)
        accepted.set(taskId, SAMPLES)
      } else await submit(connection, taskId)
    }
  }

  function start(failpoint: Parameters<typeof startKillable>[2] = null): KillableService {
    lives += 1
    service = startKillable(folders, engine?.url ?? null, failpoint)
    return service
  }

  /** Tasks for a life. Calls break off when it is killed meanwhile: the next life tells what became of them. */
  async function work(life: KillableService): Promise<void> {
    const connection = await life.ready
    if (connection === null) return
    await takeUp(connection)
    await submit(connection, `t-${lives}-a`)
    if (!harness) await submit(connection, `t-${lives}-b`)
  }

  const within = async <T>(life: KillableService, what: string, work: Promise<T>): Promise<T> => {
    const late = new AbortController()
    try {
      return await Promise.race([
        work,
        clock.sleep(LIFE_MS, late.signal).then(() => {
          throw new Error(`${what} took over ${LIFE_MS} ms:\n${life.said()}`)
        }),
      ])
    } finally {
      late.abort(new Error('over'))
    }
  }

  async function killed(life: KillableService): Promise<void> {
    const { code, signal } = await within(life, 'the end', life.ended)
    service = null
    if (signal !== 'SIGKILL') throw new Error(`the service ended with ${code ?? signal}:\n${life.said()}`)
  }

  /** Broken calls are expected of a life that is killed, and of no other. */
  const brokenBy = (life: KillableService, work: Promise<void>) =>
    work.catch(async cause => {
      const ended = await Promise.race([life.ended.then(() => true), clock.sleep(2_000).then(() => false)])
      if (!ended) throw cause
    })

  return {
    async killedAt(ms, from) {
      const life = start()
      const working = brokenBy(life, work(life))
      if (from !== 'start') {
        await within(life, 'the start', Promise.race([working, life.ended]))
        const first = engine?.sampled.size ?? 0
        const answered = async () => {
          let [last, atMs] = [first, clock.now()]
          while (engine !== null && engine.sampled.size < first + from.answers) {
            await clock.sleep(1)
            if (engine.sampled.size > last) [last, atMs] = [engine.sampled.size, clock.now()]
            else if (last > first && clock.now() > atMs + QUIET_MS) return
          }
        }
        await within(life, `${from.answers} answers`, answered())
      }
      await clock.sleep(ms)
      life.kill('SIGKILL')
      await killed(life)
      await working
    },
    async killedBy(name, nth) {
      const life = start(`${name}@${nth}`)
      const working = brokenBy(life, work(life))
      await killed(life)
      await working
    },
    async settle() {
      const life = start()
      const connection = await within(life, 'the start', life.ready)
      if (connection === null) throw new Error(`the service did not start:\n${life.said()}`)
      await takeUp(connection)
      const endMs = clock.now() + SETTLE_MS
      for (const taskId of accepted.keys()) {
        for (;;) {
          const { status, delivery } = await connection.task(taskId, 5)
          if (status === 'completed' && isObject(delivery) && delivery['state'] === 'delivered') break
          if (clock.now() > endMs)
            throw new Error(`${taskId} is ${status}, ${JSON.stringify(delivery)}:\n${life.said()}`)
          await clock.sleep(20)
        }
      }
      const figures = await verify({
        stateDir: folders.stateDir,
        connection,
        tasks: accepted,
        agentLog,
        sampled: engine?.sampled ?? null,
        decode: harness ? async ids => loadTokenizer('qwen3').decode(ids) : async () => null,
        received: receiver.received,
      })
      life.kill('SIGTERM')
      const { code } = await within(life, 'the stop', life.ended)
      service = null
      if (code !== 0) throw new Error(`the service stopped with ${code}:\n${life.said()}`)
      return figures
    },
    async close() {
      service?.kill('SIGKILL')
      await service?.ended
      await engine?.close()
      await receiver.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
