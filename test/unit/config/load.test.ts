// The config file: what is refused and in which words, what the defaults come to, and where folders may lie.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { shownPlan, withSimulationUrl } from '../../../src/config/compile.js'
import { type HostEnvironment, loadPlan, planFromText, readEnvironment } from '../../../src/config/load.js'
import { configJsonSchema, durationMs, sizeBytes } from '../../../src/config/schema.js'

const environment: HostEnvironment = {
  home: '/nowhere/home',
  stateHome: null,
  cacheHome: null,
  token: null,
  variables: { PATH: '/bin' },
}
const options = { path: null, profiles: ['vllm', 'sglang'], environment }
const load = (config: unknown) => planFromText(JSON.stringify(config), 'cluster.json', options)

function refusal(config: unknown): string {
  try {
    load(config)
  } catch (error) {
    return (error as Error).message
  }
  return 'accepted'
}

t.test('without a file, everything has its default and the simulation is the upstream', async t => {
  const plan = loadPlan(options)
  t.match(plan, {
    control: { host: '127.0.0.1', port: 8080 },
    stages: { init: 4, ready: 4, running: 2, postrun: 4 },
    stateDir: '/nowhere/home/.local/state/sextant',
    cacheDir: '/nowhere/home/.cache/sextant',
    models: { default: { upstream: 'simulation', adapter: null, trainable: true } },
    upstreams: [{ id: 'simulation', profile: 'vllm', urls: [] }],
  })
  t.strictSame(plan.limits, {
    queuedSessions: 100_000,
    samplesPerTask: 1024,
    inflightPerSession: 8,
    admissionTimeoutMs: 60_000,
    creditRecords: 64,
    creditBytes: 32 * 1024 * 1024,
    sessionCredit: 8,
    bodyBytes: 64 * 1024 * 1024,
    mailbox: 1024,
    drainMs: 30_000,
    eventQueue: 256,
    outputBytes: 1024 * 1024,
    sessionBytes: 256 * 1024 * 1024,
  })
  t.ok(plan.simulation)
  t.throws(() => {
    ;(plan.limits as { mailbox: number }).mailbox = 1
  }, 'the plan is frozen')
  t.strictSame(withSimulationUrl(plan, 'http://127.0.0.1:9').upstreams[0]?.urls, ['http://127.0.0.1:9'])
})

t.test('an upstream in the file takes the place of the simulation, unless that is asked for', async t => {
  const upstreams = [{ id: 'a', urls: ['http://10.0.0.1:8000/'], modelServed: 'm' }]
  const plan = load({ upstreams })
  t.equal(plan.simulation, null)
  t.strictSame(plan.upstreams[0]?.urls, ['http://10.0.0.1:8000'])
  t.strictSame(
    load({ upstreams, simulation: { seed: 3 } }).upstreams.map(upstream => upstream.id),
    ['a', 'simulation'],
  )
})

t.test('every problem is named with its path, and unknown keys with the nearest known one', async t => {
  t.equal(
    refusal({
      controll: {},
      limits: { mailbx: 5, drain: '30 parsecs', bodyBytes: 12 },
      stages: { running: 0 },
      upstreams: [{ id: 'a', url: 'http://x', modelServed: 'm' }],
      simulation: { solveProbability: 2, drift: ['bpe', 'bpf'] },
      compat: { unknownKeys: 'ignore' },
    }),
    [
      'config cluster.json is refused:',
      '  upstreams[0].urls: required: a list',
      '  upstreams[0].url: unknown key; did you mean "urls"?',
      '  stages.running: wanted at least 1, got 0',
      '  limits.bodyBytes: wanted a string, got 12',
      '  limits.drain: wanted a duration with its unit, like "250ms", "30s", "20m" or "7d"',
      '  limits.mailbx: unknown key; did you mean "mailbox"?',
      '  compat.unknownKeys: wanted one of "refuse", "warn", got "ignore"',
      '  simulation.solveProbability: wanted at most 1, got 2',
      '  simulation.drift[1]: wanted one of "two_line_feeds", "compact_json", "bpe", "hidden_reasoning", "thinking_off", "raw_whitespace", got "bpf"',
      '  controll: unknown key; did you mean "control"?',
    ].join('\n'),
  )
})

t.test('names that point nowhere are refused', async t => {
  const upstream = { id: 'a', urls: ['http://x'], modelServed: 'm' }
  t.equal(
    refusal({
      upstreams: [{ ...upstream, profile: 'vlm' }, upstream],
      models: { fast: { upstream: 'b' } },
    }),
    [
      'config cluster.json is refused:',
      '  upstreams[0].profile: there is no profile "vlm"; did you mean "vllm"?',
      '  upstreams[1].id: "a" is taken; wanted a name of its own for each upstream',
      '  models.fast.upstream: there is no upstream "b"; wanted one of a, a',
    ].join('\n'),
  )
  t.match(refusal({ simulation: null }), /upstreams: wanted at least one upstream, or simulation/)
})

t.test('a port that others reach needs a configured token', async t => {
  t.match(refusal({ control: { host: '0.0.0.0' } }), /control\.host: 0\.0\.0\.0 is reachable from other machines/)
  t.equal(load({ control: { host: '0.0.0.0' }, security: { token: 'x'.repeat(16) } }).control.host, '0.0.0.0')
  t.equal(
    planFromText('{"control":{"host":"0.0.0.0"}}', 'c', { ...options, environment: { ...environment, token: 'T' } })
      .security.token,
    'T',
  )
})

t.test('folders inside a git work tree are refused', async t => {
  const root = mkdtempSync(join(tmpdir(), 'sextant-config-'))
  t.teardown(() => rmSync(root, { recursive: true }))
  mkdirSync(join(root, 'project/.git'), { recursive: true })
  const path = join(root, 'project/cluster.json')
  writeFileSync(path, '// comments are allowed\n{ "stateDir": "state", "cacheDir": "../cache", "saveDir": "results", }')
  t.throws(() => loadPlan({ ...options, path }), { message: /stateDir: .*lies inside the git work tree .*project/ })
  const plan = loadPlan({ ...options, path, overrides: { stateDir: '~/state', control: { port: 0 } } })
  t.match(plan, {
    stateDir: '/nowhere/home/state',
    cacheDir: join(root, 'cache'),
    saveDir: join(root, 'project/results'),
    control: { port: 0, host: '127.0.0.1' },
  })
})

t.test('a file that is missing or no JSON is named', async t => {
  t.throws(() => loadPlan({ ...options, path: '/nowhere/c.json' }), { message: /\/nowhere\/c\.json: there is no such/ })
  t.throws(() => planFromText('{\n  "control": [,\n}', 'c.json', options), { message: /line 2, column 15/ })
})

t.test('durations and sizes need their unit', async t => {
  t.strictSame(['30s', '20m', '250ms', '1.5h', '7d'].map(durationMs), [30_000, 1_200_000, 250, 5_400_000, 604_800_000])
  t.strictSame(['', '30', 's', '-1s', '3 parsecs'].map(durationMs), [null, null, null, null, null])
  t.strictSame(['64MiB', '1KB', '2GiB', '10B'].map(sizeBytes), [67_108_864, 1024, 2_147_483_648, 10])
  t.strictSame(['', '12', '1 XB', 'MiB'].map(sizeBytes), [null, null, null, null])
})

t.test('what is shown of a plan holds no secret', async t => {
  const variables = { PATH: '/bin', https_proxy: 'http://me:pw@proxy:3128' }
  const plan = planFromText(JSON.stringify({ security: { token: 'secret-secret-secret' } }), 'c', {
    ...options,
    environment: { ...environment, variables },
  })
  const text = JSON.stringify(shownPlan(plan))
  t.notMatch(text, /secret-secret|me:pw/)
  t.match(text, /proxy:3128/)
})

t.test('child environments get no tokens and nothing of npm but where packages come from', async t => {
  const { variables, token } = readEnvironment({
    PATH: '/bin',
    HOME: '/h',
    OPENAI_API_KEY: 'k',
    POLAR_CONTROL_PLANE_TOKEN: 'T',
    NODE_OPTIONS: '--x',
    npm_lifecycle_event: 'test',
    npm_config_registry: 'http://r',
  })
  t.strictSame(variables, { PATH: '/bin', HOME: '/h', npm_config_registry: 'http://r' })
  t.equal(token, 'T')
})

t.test('the example in the repository is accepted, and comes to the defaults', async t => {
  const plan = loadPlan({ ...options, path: 'cluster.json' })
  const { nodeId, defaultRuntime, ...rest } = plan
  const { nodeId: _, defaultRuntime: __, ...defaults } = loadPlan(options)
  t.equal(nodeId, 'node-a')
  t.equal(defaultRuntime?.backend, 'local')
  t.strictSame(rest, defaults)
})

t.test('the JSON Schema for editors is the one the config is checked with', async t => {
  const written: unknown = JSON.parse(readFileSync('docs/cluster.schema.json', 'utf8'))
  t.strictSame(written, JSON.parse(JSON.stringify(configJsonSchema())), 'run node dist/scripts/config-schema.js')
})

t.test('the key of an upstream comes from the environment or a file, and is shown nowhere', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sextant-config-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'key'), 'from-file\n')
  writeFileSync(join(folder, 'broken'), 'two\nlines')
  const secret = (name: string) => (name === 'ENGINE_KEY' ? 'from-environment' : null)
  const read = (apiKey: unknown) => {
    const upstreams = [{ id: 'a', urls: ['http://x'], modelServed: 'm', apiKey }]
    const text = JSON.stringify({ upstreams })
    return planFromText(text, 'c', {
      ...options,
      path: join(folder, 'cluster.json'),
      environment: { ...environment, secret },
    })
  }
  for (const [reference, wanted] of [
    [{ env: 'ENGINE_KEY' }, 'from-environment'],
    [{ file: 'key' }, 'from-file'],
    [{ file: join(folder, 'key') }, 'from-file'],
    [null, null],
  ] as const) {
    const plan = read(reference)
    t.equal(plan.upstreams[0]?.apiKey, wanted)
    if (wanted !== null) t.notMatch(JSON.stringify(shownPlan(plan)), wanted)
  }
  const told = (reference: unknown): string => {
    try {
      read(reference)
    } catch (error) {
      return (error as Error).message
    }
    return 'accepted'
  }
  for (const [reference, message] of [
    [{ env: 'NO_SUCH' }, /upstreams\[0\]\.apiKey: the environment variable NO_SUCH is missing or empty/],
    [{ file: 'gone' }, /upstreams\[0\]\.apiKey: the file gone is missing or empty/],
    [{ file: 'broken' }, /upstreams\[0\]\.apiKey: the file broken holds no key/],
    ['sk-in-the-config', /upstreams\[0\]\.apiKey/],
  ] as const) {
    t.match(told(reference), message)
    t.notMatch(told(reference), /sk-in-the-config|two\nlines|lines$/)
  }
  const sealed = planFromText('{"security":{"callbackToken":{"env":"ENGINE_KEY"}}}', 'c', {
    ...options,
    environment: { ...environment, secret },
  })
  t.equal(sealed.security.callbackToken, 'from-environment')
  t.notMatch(JSON.stringify(shownPlan(sealed)), 'from-environment')
  t.match(
    refusal({ security: { callbackToken: { env: 'NO_SUCH' } } }),
    /security\.callbackToken: the environment variable/,
  )
  t.notMatch(refusal({ security: { callbackToken: 'literal-secret' } }), 'literal-secret')
  t.notOk('ENGINE_KEY' in readEnvironment({ ENGINE_KEY: 'k' }).variables, 'no child is given it')
  t.equal(readEnvironment({ ENGINE_KEY: ' k ' }).secret?.('ENGINE_KEY'), 'k')
})
