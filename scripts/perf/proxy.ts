// What the gateway costs: rate and added latency against the engine asked directly and against a bare byte pass-through, on one machine in
// one run; how late the proxy's event loop is; memory per live session and per call, and whether it grows.
// npm run perf:proxy [-- --full] [--only rate|latency|memory]   (short: about 3 minutes on 2 cores; --full: 100,000 calls for memory)

import { cpus, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import { closedLoop, conversations, countedCalls, type Load, paced, type Target, targetOf } from './proxy/client.js'
import type { GatewayFigures } from './proxy/gateway.js'
import { type Child, startChild } from './proxy/processes.js'

const { values } = parseArgs({ options: { full: { type: 'boolean' }, only: { type: 'string' } } })
const isFull = values.full === true
const wants = (part: string) => values.only === undefined || values.only === part

const SIZES = [4_000, 40_000, 400_000]
const SESSIONS = [1, 64, 512]
const RATE_MS = isFull ? 8_000 : 1_500
const WARM_MS = isFull ? 2_000 : 500
const PACED_MS = isFull ? 20_000 : 2_500
const MEMORY_CALLS = isFull ? 100_000 : 4_000

const kilobytes = (bytes: number) => `${bytes / 1_000} KB`
const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`
const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`
const percent = (value: number) => `${Math.round(value * 100)} %`
const namesOf = (count: number, prefix: string) => Array.from({ length: count }, (_, index) => `${prefix}-${index}`)

interface CpuFigures {
  readonly cpuMs: number
}

/** Processor time of a process for each call it answered. */
const cpu = (before: CpuFigures, after: CpuFigures, { answered }: Load): string =>
  answered === 0 ? 'no answer' : ms((after.cpuMs - before.cpuMs) / answered)

const startedAt = performance.now()
const engine = await startChild('engine.js', [])
const children: Child[] = [engine]
try {
  console.log(
    `${cpus()[0]?.model.trim()}, ${cpus().length} cores, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Node ${process.versions.node}; ` +
      `answers of 300 tokens; engine, pass-through, gateway and client in processes of their own\n`,
  )
  if (wants('rate') || wants('latency')) {
    const pipe = await startChild('engine.js', ['--pipe', engine.url])
    const gateway = await startChild('gateway.js', [engine.url, 'real'])
    children.push(pipe, gateway)
    await compare(targetOf(engine.url), targetOf(pipe.url), targetOf(gateway.url), pipe, gateway)
    await Promise.all([pipe.stop(), gateway.stop()])
  }
  if (wants('memory')) {
    const inline = await startChild('gateway.js', [engine.url, 'inline'], ['--expose-gc'])
    children.push(inline)
    await memory(targetOf(inline.url), inline)
  }
} finally {
  await Promise.all(children.map(child => child.stop()))
}
console.log(`${Math.round((performance.now() - startedAt) / 1_000)} s in all`)

async function compare(
  direct: Target,
  pipe: Target,
  gateway: Target,
  pipeControl: Child,
  control: Child,
): Promise<void> {
  const rates = new Table({
    style: { head: [], border: [] },
    head: [
      'prompt',
      'sessions',
      'answer',
      'direct /s',
      'pipe /s',
      'gateway /s',
      'of pipe',
      'pipe CPU',
      'gateway CPU',
      'loop p99',
    ],
  })
  const delays = new Table({
    head: [
      'prompt',
      'sessions',
      'calls/s',
      'direct p50/p99',
      'pipe p50/p99',
      'gateway p50/p99',
      'added p50/p99',
      'loop p99/max',
    ],
  })
  let cell = 0
  for (const bytes of SIZES) {
    for (const sessions of SESSIONS) {
      for (const stream of sessions === 64 ? [false, true] : [false]) {
        cell += 1
        const names = namesOf(sessions, `s${cell}`)
        const work = { bytes, names, stream }
        const windowMs = bytes > 100_000 ? 2 * RATE_MS : RATE_MS
        const base = await closedLoop(direct, work, windowMs, WARM_MS)
        const pipeBefore = await pipeControl.ask<CpuFigures>({ do: 'figures' })
        const piped = await closedLoop(pipe, work, windowMs, WARM_MS)
        const pipeAfter = await pipeControl.ask<CpuFigures>({ do: 'figures' })
        await control.ask({ do: 'open', names })
        const before = await control.ask<GatewayFigures>({ do: 'figures' })
        const ours = await closedLoop(gateway, work, windowMs, WARM_MS)
        const after = await control.ask<GatewayFigures>({ do: 'figures' })
        const { loop } = after
        const rate = (load: Load) => load.perSecond.toFixed(load.perSecond < 100 ? 1 : 0)
        rates.push([
          kilobytes(bytes),
          sessions,
          stream ? 'streamed' : 'whole',
          rate(base),
          rate(piped),
          rate(ours),
          percent(ours.perSecond / piped.perSecond),
          cpu(pipeBefore, pipeAfter, piped),
          cpu(before, after, ours),
          loop === null ? 'no answer' : ms(loop.p99Ms),
        ])
        if (wants('latency') && sessions > 1 && !stream) {
          const perSecond = ours.perSecond / 2
          const both = (load: Load) => `${ms(load.p50Ms)} / ${ms(load.p99Ms)}`
          const baseDelay = await paced(direct, work, perSecond, PACED_MS)
          const pipeDelay = await paced(pipe, work, perSecond, PACED_MS)
          await control.ask<GatewayFigures>({ do: 'figures' })
          const delay = await paced(gateway, work, perSecond, PACED_MS)
          const lag = (await control.ask<GatewayFigures>({ do: 'figures' })).loop
          delays.push([
            kilobytes(bytes),
            sessions,
            perSecond.toFixed(0),
            both(baseDelay),
            both(pipeDelay),
            both(delay),
            `${ms(delay.p50Ms - baseDelay.p50Ms)} / ${ms(delay.p99Ms - baseDelay.p99Ms)}`,
            lag === null ? 'no answer' : `${ms(lag.p99Ms)} / ${ms(lag.maxMs)}`,
          ])
        }
        await control.ask({ do: 'close', names })
      }
    }
  }
  console.log('Rate: every session asks again at once\n')
  console.log(rates.toString())
  console.log('\nLatency: calls at fixed times, at half the rate that the gateway reached\n')
  console.log(`${delays.toString()}\n`)
}

async function memory(target: Target, control: Child): Promise<void> {
  const used = async () => (await control.ask<GatewayFigures>({ do: 'figures' })).usedBytes
  const table = new Table({ head: ['memory', 'bytes'] })

  // Everything that is made once is made before the first figure.
  const warm = namesOf(32, 'warm')
  await control.ask({ do: 'open', names: warm })
  await countedCalls(target, { bytes: 4_000, stream: false, names: warm }, 500)
  await control.ask({ do: 'close', names: warm })
  const empty = await used()

  const idle = namesOf(512, 'idle')
  await control.ask({ do: 'open', names: idle })
  table.push(['a live session without calls', `${(((await used()) - empty) / 512 / 1_024).toFixed(1)} KiB`])
  await control.ask({ do: 'close', names: idle })

  const TURNS = 8
  const talking = namesOf(32, 'talk')
  const before = await used()
  await control.ask({ do: 'open', names: talking })
  await conversations(target, talking, TURNS, 5_000)
  const perSession = ((await used()) - before) / talking.length
  table.push([`a live session after ${TURNS} calls of 5, 10 ... 40 KB`, `${(perSession / 1_024).toFixed(0)} KiB`])
  await control.ask({ do: 'close', names: talking })
  table.push(['the same once it is closed', `${(((await used()) - before) / talking.length / 1_024).toFixed(1)} KiB`])

  const steps = 10
  const figures: number[] = []
  for (let step = 0; step <= steps; step += 1) {
    const names = namesOf(64, `grow${step}`)
    await control.ask({ do: 'open', names })
    await countedCalls(target, { bytes: 4_000, stream: step % 2 === 1, names }, MEMORY_CALLS / steps)
    await control.ask({ do: 'close', names })
    figures.push(await used())
  }
  const [first = 0] = figures
  const growth = ((figures.at(-1) ?? 0) - first) / MEMORY_CALLS
  table.push([
    `growth over ${MEMORY_CALLS} calls in ${steps * 64} sessions that come and go`,
    `${growth.toFixed(1)} a call`,
  ])
  table.push(['heap and buffers meanwhile', figures.map(mebibytes).join(', ')])
  console.log('Memory: heap and buffers of proxy and merge after a collection\n')
  console.log(table.toString())
}
