// Each import rule catches what it is there for: one violation per rule is planted in a copy of the tree.
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { projectRoot } from '../support/paths.js'

const run = promisify(execFile)

interface Report {
  readonly summary: {
    readonly violations: readonly { readonly from: string; readonly rule: { readonly name: string } }[]
  }
}

/** File -> its text, and the rule that must name it (none = a file others need). */
const PLANTS: readonly { readonly file: string; readonly text: string; readonly rule?: string }[] = [
  { file: 'src/ledger/plant-a.ts', text: "export { b } from './plant-b.js'\nexport const a = 1\n", rule: 'no-cycles' },
  { file: 'src/ledger/plant-b.ts', text: "export { a } from './plant-a.js'\nexport const b = 1\n" },
  {
    file: 'src/api/plant-actors.ts',
    text: "import type { Address } from '../../actors/system/ref.js'\nexport type A = Address\n",
    rule: 'src-knows-no-actors',
  },
  {
    file: 'src/domain/plant.ts',
    text: "export { FRAME_VERSION } from '../wire/frames.js'\n",
    rule: 'domain-imports-nothing',
  },
  { file: 'src/dialects/plant-y.ts', text: 'export const y = 1\n' },
  { file: 'src/dialects/plant-x.ts', text: "export { y } from './plant-y.js'\n", rule: 'plugins-do-not-meet' },
  {
    file: 'actors/rollout/plant-plugin.ts',
    text: "export { y } from '../../src/dialects/plant-y.js'\n",
    rule: 'only-the-registry-imports-plugins',
  },
  { file: 'actors/merge/plant.ts', text: 'export const m = 1\n' },
  {
    file: 'actors/session/plant-merge.ts',
    text: "export { m } from '../merge/plant.js'\n",
    rule: 'actors-do-not-meet',
  },
  { file: 'actors/pools/plant.ts', text: 'export const p = 1\n' },
  {
    file: 'actors/session/plant-pool.ts',
    text: "export { p } from '../pools/plant.js'\n",
    rule: 'only-stages-imports-pools',
  },
  {
    file: 'actors/system/plant.ts',
    text: "import type { MergeMessage } from '../protocol/merge.js'\nexport type M = MergeMessage\n",
    rule: 'the-kernel-knows-no-actors',
  },
  { file: 'src/builders/plant.ts', text: "export { readFile } from 'node:fs'\n", rule: 'pure-rooms-use-no-node' },
  {
    file: 'src/api/plant-undici.ts',
    text: "export { fetch } from 'undici'\n",
    rule: 'only-http-client-imports-undici',
  },
  {
    file: 'src/api/plant-hf.ts',
    text: "export { Tokenizer } from '@huggingface/tokenizers'\n",
    rule: 'only-tokenizer-imports-huggingface',
  },
  { file: 'src/wire/plant.ts', text: "export { pack } from 'msgpackr'\n", rule: 'only-codec-imports-msgpackr' },
  { file: 'src/wire/plant-lmdb.ts', text: "export { open } from 'lmdb'\n", rule: 'only-store-imports-lmdb' },
  {
    file: 'src/http/plant-fzstd.ts',
    text: "export { decompress } from 'fzstd'\n",
    rule: 'only-http-zstd-imports-fzstd',
  },
  {
    file: 'actors/pools/plant-pool.ts',
    text: "export { Piscina } from 'piscina'\n",
    rule: 'only-pool-imports-piscina',
  },
  { file: 'actors/threads/plant.ts', text: "export { wrap } from 'comlink'\n", rule: 'only-control-imports-comlink' },
  { file: 'src/api/plant-rxjs.ts', text: "export { of } from 'rxjs'\n", rule: 'rxjs-stays-under-actors' },
  {
    file: 'actors/proxy/plant-thread.ts',
    text: "export { Worker } from 'node:worker_threads'\n",
    rule: 'threads-are-made-in-threads-and-pools',
  },
  {
    file: 'src/api/plant-timer.ts',
    text: "export { setTimeout as wait } from 'node:timers/promises'\n",
    rule: 'timers-only-in-the-clock',
  },
  {
    file: 'src/api/plant-test.ts',
    text: "export { projectRoot } from '../../test/support/paths.js'\n",
    rule: 'nothing-imports-tests-or-scripts',
  },
  { file: 'src/api/plant-lost.ts', text: "export { x } from './no-such-file.js'\n", rule: 'no-unresolvable' },
]

async function cruise(root: string): Promise<Report> {
  const bin = join(projectRoot, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs')
  const args = [bin, '--config', '.dependency-cruiser.cjs', '--output-type', 'json', 'src', 'actors']
  const output = await run(process.execPath, args, { cwd: root, maxBuffer: 1 << 28 }).then(
    ({ stdout }) => stdout,
    (failed: { stdout: string }) => failed.stdout,
  )
  return JSON.parse(output) as Report
}

t.test('every import rule reports a planted violation, and the tree itself has none', async t => {
  const root = t.testdir()
  for (const entry of ['src', 'actors', 'test/support', '.dependency-cruiser.cjs', 'tsconfig.json', 'package.json']) {
    await cp(join(projectRoot, entry), join(root, entry), { recursive: true })
  }
  await symlink(join(projectRoot, 'node_modules'), join(root, 'node_modules'))
  for (const { file, text } of PLANTS) {
    await mkdir(dirname(join(root, file)), { recursive: true })
    await writeFile(join(root, file), text)
  }
  const violations = (await cruise(root)).summary.violations
  const files = new Set(PLANTS.map(({ file }) => file))
  // Nothing of the tree imports a planted file, so what its own files do is the same with and without them.
  t.strictSame(
    violations.filter(({ from }) => !files.has(from)),
    [],
    'no violation of the tree itself',
  )
  for (const { file, rule } of PLANTS) {
    if (rule === undefined) continue
    const named = violations.filter(violation => violation.from === file).map(violation => violation.rule.name)
    t.ok(named.includes(rule), `${rule} names ${file}`)
  }
  const { forbidden } = await rules()
  const planted = new Set(PLANTS.map(plant => plant.rule))
  t.strictSame(
    forbidden.filter(rule => !planted.has(rule)),
    [],
    'no rule is without a planted violation',
  )
})

async function rules(): Promise<{ forbidden: readonly string[] }> {
  const text = await readFile(join(projectRoot, '.dependency-cruiser.cjs'), 'utf8')
  const names = [...text.matchAll(/name: '([a-z-]+)'/g)].map(match => match[1] ?? '')
  const generated = [...text.matchAll(/only\('([a-z-]+)'/g)].map(match => match[1] ?? '')
  return { forbidden: [...names, ...generated] }
}
