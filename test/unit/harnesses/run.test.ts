import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { SessionSpec } from '../../../src/domain/session.js'
import type { HarnessPreset, HarnessRun, HarnessStep } from '../../../src/harnesses/base.js'
import { harnessPreset } from '../../../src/harnesses/registry.js'
import { type AgentStage, type HarnessRunInput, runHarness } from '../../../src/harnesses/run.js'
import { shell } from '../../../src/harnesses/shell.js'
import type { Runtime } from '../../../src/runtimes/base.js'
import { localDeps, localSession } from '../../support/local-runtime.js'
import { agentSpec, sessionSpec } from '../../support/specs.js'
import { wallClock } from '../../support/wall-clock.js'

const withShell = (command: string, fields: Partial<SessionSpec> = {}): SessionSpec =>
  sessionSpec({ agent: agentSpec({ custom_shell: { command } }), ...fields })

const inputOf = (runtime: Runtime, fields: Partial<HarnessRunInput> = {}): HarnessRunInput => ({
  runtime,
  preset: shell,
  spec: withShell('true'),
  gatewayUrl: 'http://127.0.0.1:9',
  sessionKey: 'sk-test',
  installDir: null,
  contextWindow: null,
  basePath: localDeps.basePath,
  sessionBudgetMs: 60_000,
  agentBudgetMs: null,
  clock: wallClock,
  ...fields,
})

const step = (command: string): HarnessStep => ({ command, env: {} })
const presetOf = (run: Partial<HarnessRun>, fields: Partial<HarnessPreset> = {}): HarnessPreset => ({
  ...shell,
  logName: 'all.txt',
  prepare: () => ({ files: [], uploads: [], env: {}, setup: [], steps: [], postprocess: [], ...run }),
  ...fields,
})

t.test('harness shell gets the instruction in a file and the gateway in its environment', async t => {
  const { runtime, handle } = await localSession(t)
  const command = 'cat "$POLAR_INSTRUCTION_FILE" > got; echo "$OPENAI_BASE_URL $ANTHROPIC_API_KEY $MINE $SESSION_ID"'
  const spec = withShell(command, {
    instruction: 'Do it.\n"quoted" $HOME',
    agent: agentSpec({ custom_shell: { command }, env: { MINE: 'agent' } }),
    runtime: { ...sessionSpec().runtime, env: { MINE: 'runtime' } },
  })
  const { agentResult, timing } = await runHarness(inputOf(runtime, { spec }))
  t.match(agentResult, { status: 'completed', returnCode: 0, error: null, timeoutSource: null })
  t.equal(readFileSync(join(handle.workspaceDir, 'got'), 'utf8'), spec.instruction)
  const log = readFileSync(join(handle.sessionDir, 'logs', 'agent', 'step.00.stdout.log'), 'utf8')
  t.equal(log, 'http://127.0.0.1:9/v1 sk-test agent s-test\n')
  t.ok(timing.agent_exec_ms !== undefined && timing.agent_setup_ms !== undefined)
})

t.test('a non-zero exit is a failed run with its code and the end of its output', async t => {
  const { runtime } = await localSession(t)
  const { agentResult } = await runHarness(inputOf(runtime, { spec: withShell('echo broken >&2; exit 3 | cat') }))
  t.match(agentResult, { status: 'failed', returnCode: 3, error: 'the harness exited with 3: broken' })
})

t.test('the first step that fails ends the run; all steps share the combined log', async t => {
  const { runtime, handle } = await localSession(t)
  const stages: AgentStage[] = []
  const preset = presetOf({
    setup: [step('echo setup')],
    steps: [step('echo one'), step('echo two; exit 4'), step('echo three')],
    postprocess: [step('echo post')],
  })
  const { agentResult } = await runHarness(inputOf(runtime, { preset, onStage: stage => stages.push(stage) }))
  t.match(agentResult, { status: 'failed', returnCode: 4 })
  t.strictSame(stages, ['setup', 'exec', 'postprocess'])
  const log = readFileSync(join(handle.sessionDir, 'logs', 'agent', 'all.txt'), 'utf8')
  t.equal(log, 'setup\none\ntwo\npost\n')
})

t.test('a failed setup ends the run before its first step', async t => {
  const { runtime } = await localSession(t)
  const stages: AgentStage[] = []
  const preset = presetOf({ setup: [step('exit 9')], steps: [step('touch ran')] })
  const { agentResult } = await runHarness(inputOf(runtime, { preset, onStage: stage => stages.push(stage) }))
  t.match(agentResult, { status: 'failed', returnCode: 9 })
  t.strictSame(stages, ['setup'])
  t.equal(await runtime.readFile('ran', 1), null)
})

t.test('the verdict of the harness decides, whatever the exit code', async t => {
  const { runtime } = await localSession(t)
  const judge: HarnessPreset['judge'] = ({ stdout }) => (stdout.includes('bad') ? 'it said bad' : null)
  const bad = await runHarness(inputOf(runtime, { preset: presetOf({ steps: [step('echo bad')] }, { judge }) }))
  t.match(bad.agentResult, { status: 'failed', returnCode: 0, error: 'it said bad' })
  const good = await runHarness(inputOf(runtime, { preset: presetOf({ steps: [step('exit 1')] }, { judge }) }))
  t.match(good.agentResult, { status: 'completed', returnCode: 1, error: null })
  const killed = await runHarness(inputOf(runtime, { preset: presetOf({ steps: [step('kill -9 $$')] }, { judge }) }))
  t.match(killed.agentResult, { status: 'failed', returnCode: 137 })
})

t.test('the smaller budget ends the run and is named; a tie counts as the session', async t => {
  const { runtime } = await localSession(t)
  const spec = withShell('echo begun; sleep 300')
  const cases = [
    { sessionBudgetMs: 60_000, agentBudgetMs: 200, source: 'agent' },
    { sessionBudgetMs: 200, agentBudgetMs: 200, source: 'session' },
    { sessionBudgetMs: 200, agentBudgetMs: null, source: 'session' },
  ] as const
  for (const { source, ...budgets } of cases) {
    const { agentResult } = await runHarness(inputOf(runtime, { spec, ...budgets }))
    t.match(agentResult, {
      status: 'timeout',
      returnCode: -1,
      error: `${source} execution timeout`,
      timeoutSource: source,
      timeoutStage: 'exec',
    })
  }
})

t.test('no step starts when setup has used up the budget', async t => {
  const { runtime } = await localSession(t)
  const preset = presetOf({ setup: [step('sleep 300')], steps: [step('touch ran')] })
  const { agentResult } = await runHarness(inputOf(runtime, { preset, sessionBudgetMs: 200 }))
  t.match(agentResult, { status: 'timeout', timeoutStage: 'setup' })
  t.equal(await runtime.readFile('ran', 1), null)
})

t.test('a failing postprocess is noted and changes nothing', async t => {
  const { runtime } = await localSession(t)
  const preset = presetOf({ steps: [step('true')], postprocess: [step('exit 5')] })
  const { agentResult } = await runHarness(inputOf(runtime, { preset }))
  t.match(agentResult, { status: 'completed', returnCode: 0, metadata: { postprocess_error: /exited with 5/ } })
})

t.test('a cancel ends the run and is told apart from a failure', async t => {
  const { runtime } = await localSession(t)
  const cancel = new AbortController()
  const result = await runHarness(
    inputOf(runtime, { spec: withShell('sleep 300'), signal: cancel.signal, onProcess: () => cancel.abort() }),
  )
  t.match(result, { cancelled: true, agentResult: { status: 'failed', error: 'cancelled' } })
})

t.test('a configuration file outside the session folder is refused', async t => {
  const { runtime } = await localSession(t)
  const preset = presetOf({ files: [{ path: '/etc/sextant-test', content: 'x' }] })
  await t.rejects(runHarness(inputOf(runtime, { preset })), { code: 'RUNTIME_PATH_REFUSED' })
})

t.test('an unknown harness and a shell without a command are refused', t => {
  t.throws(() => harnessPreset('nope'), { code: 'HARNESS_UNKNOWN', message: /wanted one of shell/ })
  const paths = shell.check(agentSpec({ settings: { wrong: 1 } })).map(problem => problem.path)
  t.strictSame(paths, ['settings.wrong', 'custom_shell'])
  t.end()
})
