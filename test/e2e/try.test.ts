// `sextant try` as a program against servers of this process, and the service that probes what its config names.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { LIES, liar, silently } from '../support/liar.js'
import { type Ended, program } from '../support/program.js'
import { runService } from '../support/service.js'
import { simulate } from '../support/simulation.js'

interface Teardown {
  teardown(run: () => unknown): unknown
}

function tried(t: Teardown, ...args: readonly string[]): Promise<Ended> {
  const home = mkdtempSync(join(tmpdir(), 'sextant-try-'))
  t.teardown(() => rmSync(home, { recursive: true, force: true }))
  return program(t, home, ['try', '--harness', 'none', ...args]).ended
}

t.test('an honest server: trainable, exit code 0, every step told', async t => {
  const { url } = await simulate(t, { contextWindow: 8_192 })
  const { code, stdout, stderr } = await tried(t, '--upstream', `${url}/v1`)
  t.equal(code, 0, stderr)
  t.match(stdout, /^Verdict: TRAINABLE/m)
  t.match(stdout, /ok\s+logprob_semantics\s+raw/)
  t.match(stderr, /probe: sampling/)
})

t.test('truncated sampling reported as raw: evaluation only, exit code 3, with the flag that cures it', async t => {
  const { url } = await simulate(t, { contextWindow: 8_192 }, { sampler: silently({ topK: 2 }) })
  const { code, stdout } = await tried(t, '--upstream', url, '--model', 'policy')
  t.equal(code, 3)
  t.match(stdout, /^Verdict: EVALUATION ONLY \(sampling_truncated\)/m)
  t.match(stdout, /change: vLLM: `--generation-config vllm`/)
})

t.test('nobody there: exit code 1; words that are not known: refused', async t => {
  const away = await tried(t, '--upstream', 'http://127.0.0.1:9', '--json')
  t.equal(away.code, 1)
  t.match(JSON.parse(away.stdout), { report: { verdict: 'unreachable' }, proof: null })
  const wrong = await tried(t, '--upstream', 'gpu:8000/x y')
  t.not(wrong.code, 0)
  t.match(wrong.stderr, /wanted an http or https URL/)
})

t.test('the service probes what its config names, and says in /health how it stands', async t => {
  const honest = await simulate(t, { contextWindow: 8_192 })
  const lying = await liar(t, honest, LIES.noToolParser)
  const { service } = await runService(t, {
    upstreams: [
      { id: 'honest', urls: [honest.url], modelServed: 'policy' },
      { id: 'liar', urls: [lying], modelServed: 'policy' },
      { id: 'plain', urls: [honest.url], modelServed: 'policy', probe: 'off' },
    ],
  })
  const health = async () => {
    const { upstreams } = (await (await fetch(`${service.controlUrl}/health`)).json()) as {
      upstreams: readonly { readonly id: string; readonly verdict: string; readonly reasons: readonly string[] }[]
    }
    return upstreams
  }
  let upstreams = await health()
  while (upstreams.some(({ verdict }) => verdict === 'not_probed')) upstreams = await health()
  t.strictSame(
    upstreams.map(({ id, verdict, reasons }) => [id, verdict, reasons]),
    [
      ['honest', 'trainable', []],
      ['liar', 'evaluation_only', ['no_tool_parser']],
      ['plain', 'off', []],
    ],
  )
  const status = await fetch(`${service.controlUrl}/rollout/status`, {
    headers: { 'x-polar-control-token': service.token },
  })
  t.match(await status.json(), {
    upstreams: [{}, { findings: [{ check: String, outcome: String, seen: String }] }, {}],
  })
})
