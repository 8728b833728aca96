import t from 'tap'
import type { RuntimeHandle } from '../../../src/runtimes/base.js'
import {
  commandPath,
  type EnvironmentStage,
  environmentNameProblems,
  runtimeEnvironment,
  stageEnvironment,
} from '../../../src/runtimes/environment.js'
import { localSpec } from '../../support/local-runtime.js'
import { agentSpec } from '../../support/specs.js'

const at = (stage: EnvironmentStage, stepEnv: Record<string, string> = {}) =>
  stageEnvironment({
    stage,
    sessionId: 's-1',
    taskId: 'task-1',
    runtime: { ...localSpec, env: { A: 'runtime', B: 'runtime', C: 'runtime' } },
    agent: agentSpec({ env: { B: 'agent', C: 'agent' } }),
    evaluator: { strategy: 'x', config: {}, env: { B: 'evaluator', JUDGE_API_KEY: 'k' }, refresh_runtime: null },
    gateway: { url: 'http://127.0.0.1:8801', key: 'sk-1' },
    stepEnv,
  })

t.test("the agent's stages get gateway values of all three kinds, under the task's own layers", t => {
  for (const stage of ['setup', 'run', 'postrun'] as const) {
    t.strictSame(at(stage, { C: 'step' }), {
      ANTHROPIC_BASE_URL: 'http://127.0.0.1:8801',
      OPENAI_BASE_URL: 'http://127.0.0.1:8801/v1',
      GOOGLE_API_URL: 'http://127.0.0.1:8801',
      ANTHROPIC_API_KEY: 'sk-1',
      OPENAI_API_KEY: 'sk-1',
      GOOGLE_API_KEY: 'sk-1',
      A: 'runtime',
      B: 'agent',
      C: 'step',
      SESSION_ID: 's-1',
      TASK_ID: 'task-1',
      POLAR_ALLOW_INTERNET: 'true',
    })
  }
  t.end()
})

t.test("preparing and evaluation see neither key nor URL nor the agent's layer", t => {
  for (const stage of ['prepare', 'eval_prepare', 'evaluation'] as const) {
    const env = at(stage)
    t.strictSame(
      Object.keys(env).filter(name => /_KEY|_URL/.test(name)),
      stage === 'evaluation' ? ['JUDGE_API_KEY'] : [],
    )
    t.equal(env['B'], stage === 'evaluation' ? 'evaluator' : 'runtime')
  }
  t.end()
})

t.test('the last word on internet access is the runtime spec', t => {
  t.equal(at('run', { POLAR_ALLOW_INTERNET: 'no', SESSION_ID: 'x' })['POLAR_ALLOW_INTERNET'], 'true')
  t.end()
})

t.test('the place decides HOME, folders, marker and how far git looks up', t => {
  const handle: RuntimeHandle = {
    backend: 'local',
    sessionId: 's-1',
    role: 'eval',
    sessionDir: '/s/eval_runtime',
    workspaceDir: '/s/eval_runtime/workspace',
    homeDir: '/s/eval_runtime/home',
  }
  const { defaults, fixed } = runtimeEnvironment(handle, '/usr/bin:/bin')
  t.match(defaults, { PATH: '/usr/bin:/bin', GIT_CONFIG_GLOBAL: '/dev/null', GIT_AUTHOR_NAME: String })
  t.strictSame(fixed, {
    HOME: '/s/eval_runtime/home',
    TMPDIR: '/s/eval_runtime/tmp',
    SESSION_DIR: '/s/eval_runtime',
    ARTIFACTS_DIR: '/s/eval_runtime/artifacts',
    LOGS_DIR: '/s/eval_runtime/logs',
    AGENT_LOG_DIR: '/s/eval_runtime/logs/agent',
    GIT_CEILING_DIRECTORIES: '/s/eval_runtime',
    SEXTANT_SESSION: 's-1',
    SEXTANT_ROLE: 'eval',
  })
  t.end()
})

t.test("a package script's folders are not on a command's PATH", t => {
  const path = '/p/node_modules/.bin:/node_modules/.bin:/usr/lib/node_modules/npm/bin/node-gyp-bin:/usr/bin::/bin'
  t.equal(commandPath(path, ['/first']), '/first:/usr/bin:/bin')
  t.end()
})

t.test('names that carry model access or belong to the service are refused, by layer', t => {
  const names = (env: Record<string, string>, layer: 'runtime' | 'evaluator') =>
    environmentNameProblems(env, layer).map(problem => problem.name)
  const refused = { OPENAI_API_KEY: 'x', GEMINI_API_KEY: 'x', HOME: 'x', SEXTANT_SESSION: 'x', 'A-B': 'x', NUL: '\0' }
  t.strictSame(names({ ...refused, FINE: 'x' }, 'runtime'), Object.keys(refused))
  t.strictSame(names({ OPENAI_API_KEY: 'x', HOME: 'x' }, 'evaluator'), ['HOME'])
  t.end()
})
