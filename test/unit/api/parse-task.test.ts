// What POST /rollout/task/submit accepts, and how it says what it wanted.

import t from 'tap'
import { callbackProblem } from '../../../src/api/callback-url.js'
import { parseTask } from '../../../src/api/parse-task.js'
import type { TaskPlugins } from '../../../src/api/plugins.js'

const plugins: TaskPlugins = {
  harnesses: {
    shell: { check: () => [] },
    codex: {
      check: agent => ('vrsion' in agent.settings ? [{ path: 'settings.vrsion', message: 'unknown setting' }] : []),
    },
  },
  runtimes: {
    local: {
      check: spec => [
        ...(spec.image === null ? [] : [{ path: 'image', message: 'must be absent for runtime local' }]),
        ...spec.prepare.flatMap((action, index) =>
          action.type !== 'exec' && action.target.startsWith('/')
            ? [{ path: `prepare[${index}].target`, message: 'wanted a relative path' }]
            : [],
        ),
      ],
    },
  },
  builders: { per_request: { check: () => [] }, prefix_merging: { check: () => [] } },
  evaluators: { session_completed: { check: () => [] }, test_on_output: { check: () => [] } },
}
const plan = {
  limits: { samplesPerTask: 8 } as never,
  models: { default: { upstream: 'u', adapter: null, trainable: true } },
  defaultRuntime: null,
  security: { callbackHosts: ['trainer.example'] },
  compat: { unknownKeys: 'refuse' as const },
}
const minimal = {
  task_id: 't1',
  instruction: 'go',
  runtime: { backend: 'local' },
  agent: { harness: 'codex' },
}
const parse = (body: unknown, change: Partial<typeof plan> | { compat: { unknownKeys: 'warn' } } = {}) =>
  parseTask(body, { ...plan, ...change }, plugins)

function detail(body: unknown): readonly string[] {
  const parsed = parse(body)
  return parsed.ok ? [] : parsed.detail.map(({ loc, msg, type }) => `${loc.join('/')} ${type}: ${msg}`)
}

t.test('a minimal task gets every default', async t => {
  const parsed = parse(minimal)
  t.ok(parsed.ok)
  if (!parsed.ok) return
  t.strictSame(parsed.warnings, [])
  t.strictSame(parsed.request, {
    task_id: 't1',
    instruction: 'go',
    num_samples: 1,
    dispatch_priority: 0,
    early_stop_min_usable_sessions: null,
    timeout_seconds: 600,
    runtime: {
      backend: 'local',
      image: null,
      prepare: [],
      eval_prepare: null,
      env: {},
      network: 'host',
      workdir: null,
      direct_exec_init_command: null,
      cpus: null,
      memory_mb: null,
      storage_mb: null,
      gpus: 0,
      allow_internet: true,
      internet_volumes: [],
      import_path: null,
      kwargs: {},
    },
    agent: {
      harness: 'codex',
      import_path: null,
      model_name: null,
      settings: {},
      env: {},
      mcp_servers: [],
      skills_path: null,
      custom_shell: null,
    },
    builder: { strategy: 'per_request', config: {} },
    evaluator: null,
    callback_url: null,
    callback_results: 'full',
    metadata: {},
    sampling: {},
    limits: {
      max_turns: null,
      max_input_tokens: null,
      max_output_tokens: null,
      max_total_tokens: null,
      context_window: null,
    },
    models: {},
  })
})

t.test('a full task is taken as it is', async t => {
  const parsed = parse({
    ...minimal,
    num_samples: 4,
    early_stop_min_usable_sessions: 4,
    runtime: {
      backend: 'local',
      prepare: [
        { type: 'upload_dir', source: '/data/calc', target: 'calc' },
        { type: 'exec', command: 'git init', cwd: 'calc', max_attempts: 2 },
      ],
    },
    sampling: { temperature: 0.7, top_k: { value: 20, mode: 'force' }, seed: 3 },
    limits: { max_turns: 30 },
    models: { 'gpt-*-mini': 'default' },
    metadata: { agent_timeout: 900, eval_sampling_seed_base: '12', group: { deep: [1, null] } },
    callback_url: 'http://127.0.0.1:41873/callback/task_result',
    evaluator: { strategy: 'test_on_output', config: { repo_dir: 'calc' } },
  })
  t.ok(parsed.ok)
  if (!parsed.ok) return
  t.strictSame(parsed.request.sampling, {
    temperature: { value: 0.7, mode: 'default' },
    top_k: { value: 20, mode: 'force' },
    seed: { value: 3, mode: 'default' },
  })
  t.strictSame(parsed.request.runtime?.prepare[1], {
    type: 'exec',
    command: 'git init',
    cwd: 'calc',
    max_attempts: 2,
    retry_backoff_seconds: 0,
  })
  t.strictSame(parsed.request.metadata['group'], { deep: [1, null] })
})

t.test('schema problems name the path, what was wanted and what was got, all at once', async t => {
  t.strictSame(
    detail({
      task_id: 'a/../../etc',
      num_rollout: 4,
      num_samples: 0,
      dispatch_priority: 101,
      timeout_seconds: '5',
      runtime: { backend: 'local', prepare: [{ type: 'upload_file', source: 'a', command: 'x' }, { type: 'exe' }] },
      agent: {
        harness: 'codex',
        harnes: 'x',
        env: { 'A B': 'c', D: 3 },
        mcp_servers: [{ name: 'm', transport: 'sse' }],
      },
      sampling: { temperature: { valu: 1 }, top_p: 'x', seeed: 1 },
      limits: { max_turns: 0 },
      metadata: { agent_timeout: true, eval_sampling_seed_base: -1 },
    }),
    [
      'body/task_id custom: wanted a letter or digit, then up to 127 of letters, digits, "_", "." and "-"',
      'body/instruction missing: required: a string',
      'body/num_samples too_small: wanted at least 1, got 0',
      'body/dispatch_priority too_big: wanted at most 100, got 101',
      'body/timeout_seconds invalid_type: wanted a number, got "5"',
      'body/runtime/prepare/0/target missing: required: a string',
      'body/runtime/prepare/0/command unknown_key: unknown key; known here: type, source, target',
      'body/runtime/prepare/1/type invalid_union: wanted one of upload_file, upload_dir, exec, got "exe"',
      'body/agent/env/A B invalid_key: wanted a name of letters, digits and "_", not starting with a digit',
      'body/agent/env/D invalid_type: wanted a string, got 3',
      'body/agent/mcp_servers/0/url custom: required: transport "sse" needs url',
      'body/agent/harnes unknown_key: unknown key; did you mean "harness"?',
      'body/metadata/agent_timeout custom: wanted a number of seconds above 0',
      'body/metadata/eval_sampling_seed_base custom: wanted a whole number of at least 0',
      'body/sampling/temperature/value missing: required: a number',
      'body/sampling/temperature/valu unknown_key: unknown key; did you mean "value"?',
      'body/sampling/top_p invalid_type: wanted a number or an object, got "x"',
      'body/sampling/seeed unknown_key: unknown key; did you mean "seed"?',
      'body/limits/max_turns too_small: wanted at least 1, got 0',
      'body/num_rollout unknown_key: unknown key; did you mean "num_samples"?',
    ],
  )
  t.strictSame(detail([]), ['body invalid_type: wanted an object, got a list'])
  t.strictSame(detail(undefined), ['body missing: required: an object'])
})

t.test('rules between fields', async t => {
  const wrong = (change: object) => detail({ ...minimal, ...change })
  t.match(wrong({ num_samples: 2, early_stop_min_usable_sessions: 3 }), [/cannot exceed num_samples \(2\)/])
  t.match(wrong({ num_samples: 9 }), [/body\/num_samples custom: wanted at most 8 \(limits\.samplesPerTask\), got 9/])
  t.match(wrong({ agent: {} }), [/body\/agent\/harness custom: wanted exactly one of harness and import_path/])
  t.match(wrong({ agent: { harness: 'shell' } }), [/body\/agent\/custom_shell custom: required/])
  t.match(wrong({ agent: { harness: 'codex', custom_shell: { command: 'x' } } }), [/allowed only for harness "shell"/])
})

t.test('what plugins say is mapped below the body', async t => {
  t.strictSame(
    detail({
      ...minimal,
      runtime: { backend: 'local', image: 'x', prepare: [{ type: 'upload_dir', source: '/a', target: '/b' }] },
      agent: { harness: 'codex', settings: { vrsion: 1 }, env: { OPENAI_BASE_URL: 'http://elsewhere' } },
      models: { x: 'defalt' },
      evaluator: { strategy: 'test_on_output', config: { repo_dir: '/testbed' } },
      callback_url: 'http://evil.example/',
    }),
    [
      'body/runtime/image custom: must be absent for runtime local',
      'body/runtime/prepare/0/target custom: wanted a relative path',
      'body/agent/settings/vrsion custom: unknown setting',
      'body/evaluator/config/repo_dir custom: wanted a path relative to the workspace of runtime "local"',
      'body/models/x custom: there is no model alias of this service "defalt"; did you mean "default"?',
      'body/agent/env/OPENAI_BASE_URL custom: is set by the gateway for every session and cannot be replaced',
      'body/callback_url custom: host "evil.example" is not in security.callbackHosts',
    ],
  )
})

t.test('names of plugins that do not exist, and Python paths, are refused with a sentence', async t => {
  const wrong = (change: object) => detail({ ...minimal, ...change }).join('\n')
  t.match(
    wrong({ agent: { harness: 'codx' } }),
    /agent\/harness custom: there is no harness "codx"; did you mean "codex"/,
  )
  t.match(
    wrong({ runtime: { image: 'x' } }),
    /runtime\/backend custom: there is no runtime "docker"; wanted one of local/,
  )
  t.match(wrong({ runtime: null }), /runtime missing: required: this service has no defaultRuntime/)
  t.match(
    wrong({ agent: { import_path: 'my.pkg.module:Agent' } }),
    /agent\/import_path custom: "my\.pkg\.module:Agent" is a Python import path/,
  )
  t.match(wrong({ builder: { strategy: 'mod:Builder' } }), /builder\/strategy custom: "mod:Builder" is a Python import/)
  t.match(wrong({ evaluator: { strategy: 'sesion_completed' } }), /did you mean "session_completed"/)
})

t.test('with unknownKeys "warn", unknown keys are ignored and listed', async t => {
  const parsed = parse(
    { ...minimal, num_rollouts: 3, agent: { harness: 'codex', x: 1 } },
    { compat: { unknownKeys: 'warn' } },
  )
  t.ok(parsed.ok)
  if (!parsed.ok) return
  t.strictSame(
    parsed.warnings.map(text => text.split(':')[0]),
    ['ignored agent.x', 'ignored num_rollouts'],
  )
  t.notOk('num_rollouts' in parsed.request)
})

t.test('callback URLs: http and https, no credentials, loopback or a listed host', async t => {
  const ok = ['http://127.0.0.1:1/x', 'http://localhost/x', 'http://[::1]:3/', 'https://trainer.example/x']
  t.strictSame(
    ok.map(url => callbackProblem(url, ['trainer.example'])),
    [null, null, null, null],
  )
  t.match(callbackProblem('ftp://127.0.0.1/', []), /wanted an http or https URL, got ftp/)
  t.match(callbackProblem('http://u:p@127.0.0.1/', []), /credentials/)
  t.match(callbackProblem('nonsense', []), /wanted an http or https URL/)
  t.match(callbackProblem('http://127.0.0.1.evil.example/', []), /not in security\.callbackHosts/)
  t.equal(callbackProblem('http://any.example/', ['*']), null)
})
