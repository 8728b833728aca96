import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { JsonObject } from '../../../src/domain/json.js'
import type { PrepareAction } from '../../../src/domain/task.js'
import type { EvaluatorContext } from '../../../src/evaluators/base.js'
import { evaluatorPlugin } from '../../../src/evaluators/registry.js'
import { testOnOutput } from '../../../src/evaluators/test-on-output.js'
import { sessionLayout, stageEnvironment } from '../../../src/runtimes/environment.js'
import { runPrepare } from '../../../src/runtimes/prepare.js'
import { localSession, localSpec } from '../../support/local-runtime.js'
import { agentResult, emptyTrajectory } from '../../support/outcomes.js'
import { agentSpec } from '../../support/specs.js'
import { wallClock } from '../../support/wall-clock.js'

const exec = (command: string): PrepareAction => ({ type: 'exec', command, max_attempts: 1, retry_backoff_seconds: 0 })

/** A repository whose test passes when `answer.txt` says 42. */
const PREPARE = `git init -q repo && cd repo
mkdir -p 'with space' src
echo 41 > answer.txt; echo old > src/gone.txt; seq 1 200 | gzip -n > src/data.bin; echo a > 'with space/file name.txt'
cat > test.sh <<'END'
if [ "$(cat answer.txt)" = 42 ]; then echo "PASSED tests/test_answer.py::TestAnswer::test_42"; else echo "FAILED tests/test_answer.py::TestAnswer::test_42 - assert"; fi
echo "PASSED tests/test_answer.py::test_other"
END
git add -A && git commit -qm base`

const CONFIG: JsonObject = {
  repo_dir: 'repo',
  test_command: 'bash test.sh',
  expected_output_json: { 'TestAnswer.test_42': 'PASSED', test_other: 'PASSED' },
}

interface Graded {
  readonly reward: number | null
  readonly metadata: Readonly<Record<string, unknown>>
  readonly report: Readonly<Record<string, unknown>>
  readonly context: EvaluatorContext
}

/** The agent's work is `agentWork`, run in `repo/`. */
async function grade(
  t: Test,
  agentWork: string,
  options: { config?: JsonObject; context?: Partial<EvaluatorContext>; prepare?: string } = {},
): Promise<Graded> {
  const context = await contextOf(t, agentWork, options)
  const result = await testOnOutput.evaluate({ ...CONFIG, ...options.config }, context)
  const report = result.metadata['report'] as Graded['report']
  return { reward: result.outcomeReward, metadata: result.metadata, report, context }
}

async function contextOf(
  t: Test,
  agentWork: string,
  options: { context?: Partial<EvaluatorContext>; prepare?: string } = {},
): Promise<EvaluatorContext> {
  const { plugin, handle, runtime } = await localSession(t)
  const layout = sessionLayout(handle.sessionDir)
  const actions = [exec(options.prepare ?? PREPARE)]
  const prepare = async (into: typeof runtime, name: 'prepare' | 'eval_prepare') => {
    const outcome = await runPrepare({
      runtime: into,
      actions,
      name,
      logsDir: layout.logsDir,
      env: own => own,
      timeoutMs: 60_000,
      clock: wallClock,
    })
    if (outcome.status !== 'done') throw new Error(`${outcome.error}`)
  }
  await prepare(runtime, 'prepare')
  const worked = await runtime.exec({ command: agentWork, cwd: 'repo', env: {} })
  if (worked.returnCode !== 0) throw new Error(worked.stderr)
  return {
    sessionId: handle.sessionId,
    taskId: 'task-1',
    sessionDir: handle.sessionDir,
    artifactsDir: layout.artifactsDir,
    logsDir: layout.evalLogDir,
    agentResult: agentResult(),
    trajectory: emptyTrajectory(),
    runtimeSpec: localSpec,
    runtime,
    refreshRuntime: true,
    freshRuntime: async () => {
      const fresh = await plugin.create({
        sessionId: handle.sessionId,
        sessionDir: handle.sessionDir,
        spec: localSpec,
        role: 'eval',
      })
      const attached = plugin.attach(fresh)
      await prepare(attached, 'eval_prepare')
      return attached
    },
    env: stageEnvironment({
      stage: 'evaluation',
      sessionId: handle.sessionId,
      taskId: 'task-1',
      runtime: localSpec,
      agent: agentSpec(),
      evaluator: null,
      gateway: { url: 'http://127.0.0.1:9', key: 'sk-secret' },
    }),
    workspaceLitter: ['.claude'],
    clock: wallClock,
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    ...options.context,
  }
}

t.test('a right patch gets reward 1 in the fresh copy, a wrong one 0', async t => {
  const right = await grade(t, 'echo 42 > answer.txt')
  t.equal(right.reward, 1)
  t.match(right.report, {
    resolved: true,
    exit_code: 0,
    match: 'exact',
    actual_output: { 'TestAnswer.test_42': 'PASSED', test_other: 'PASSED' },
    missing: [],
    unexpected: [],
  })
  t.match(right.metadata, {
    mode: 'fresh_runtime',
    applied_by: 'git apply',
    patch_path: 'artifacts/patch.diff',
    patch_files: ['answer.txt'],
    test_output_path: 'artifacts/test_output.txt',
    test_output_tail: /PASSED tests/,
  })
  t.match(readFileSync(join(right.context.sessionDir, 'artifacts', 'patch.diff'), 'utf8'), /^diff --git a\/answer.txt/)
  const wrong = await grade(t, 'echo 43 > answer.txt')
  t.equal(wrong.reward, 0)
  t.match(wrong.report, { resolved: false, missing: ['TestAnswer.test_42'] })
})

t.test('new, deleted, binary, spaced and unusual files survive the way into the fresh copy', async t => {
  const work = `echo 42 > answer.txt; git rm -q src/gone.txt; seq 1 300 | gzip -n > src/data.bin; cp src/data.bin new.bin
echo b > 'with space/file name.txt'; printf 'caf\\351' > latin1.txt; echo n > 'new "quoted" é.txt'; ln -s answer.txt link; chmod +x test.sh`
  const { reward, metadata, context } = await grade(t, work)
  t.equal(reward, 1)
  const files = [...(metadata['patch_files'] as string[])].sort()
  t.strictSame(files, [
    'answer.txt',
    'latin1.txt',
    'link',
    'new "quoted" é.txt',
    'new.bin',
    'src/data.bin',
    'src/gone.txt',
    'test.sh',
    'with space/file name.txt',
  ])
  const agent = join(context.sessionDir, 'workspace', 'repo')
  const fresh = join(context.sessionDir, 'eval_runtime', 'workspace', 'repo')
  for (const name of files.filter(name => name !== 'src/gone.txt')) {
    t.strictSame(readFileSync(join(fresh, name)), readFileSync(join(agent, name)), name)
  }
  t.notOk(existsSync(join(fresh, 'src', 'gone.txt')))
})

t.test('excluded files and what the harness leaves stay out of the patch', async t => {
  const work = `echo 42 > answer.txt; mkdir -p a/__pycache__ .claude 'my tests/deep'
echo x > a/__pycache__/m.pyc; echo x > top.pyc; echo x > .claude/s.json; echo x > 'my tests/deep/t.txt'; echo x > kept.txt`
  const { metadata, reward } = await grade(t, work, { config: { exclude_patterns: ['my tests'] } })
  t.equal(reward, 1)
  t.strictSame(metadata['patch_files'], ['answer.txt', 'kept.txt'])
  t.strictSame([...(metadata['patch_excluded'] as string[])].sort(), [
    '.claude/s.json',
    'a/__pycache__/m.pyc',
    'my tests/deep/t.txt',
    'top.pyc',
  ])
})

t.test('what the agent committed is in the patch, and its index is not touched', async t => {
  const work =
    'echo 42 > answer.txt; git add -A; git commit -qm mine; echo staged > s.txt; git add s.txt; echo loose > l.txt'
  const { reward, metadata, context } = await grade(t, work)
  t.equal(reward, 1)
  t.strictSame(metadata['patch_files'], ['answer.txt', 'l.txt', 's.txt'])
  const status = await context.runtime?.exec({ command: 'git status --porcelain', cwd: 'repo', env: {} })
  t.equal(status?.stdout, 'A  s.txt\n?? l.txt\n')
})

t.test("the agent's git configuration does not steer the extraction", async t => {
  const work = `echo 42 > answer.txt
git config diff.external /bin/false; git config core.fsmonitor 'touch pwned; false'; git config diff.noprefix true; git config color.ui always`
  const { reward, context } = await grade(t, work)
  t.equal(reward, 1)
  t.notOk(existsSync(join(context.sessionDir, 'workspace', 'repo', 'pwned')))
})

t.test('files that preparing leaves untracked in both copies do not stand in the way', async t => {
  const prepare = `${PREPARE}\necho built > build.out`
  const { reward } = await grade(t, 'echo 42 > answer.txt; echo rebuilt > build.out', { prepare })
  t.equal(reward, 1)
})

t.test('no change is reward 0 as an empty generation, and no test is run', async t => {
  const { reward, report, metadata, context } = await grade(t, 'true')
  t.equal(reward, 0)
  t.match(report, { empty_generation: true, resolved: false, exit_code: null })
  t.notOk('test_output_path' in metadata)
  t.notOk(existsSync(join(context.sessionDir, 'artifacts', 'test_output.txt')))
})

t.test('a patch that does not fit is reward 0 with the output of the attempts', async t => {
  const patch = '--- a/missing.txt\\n+++ b/missing.txt\\n@@ -1 +1 @@\\n-x\\n+y\\n'
  const config = { patch_command: `printf 'diff --git a/missing.txt b/missing.txt\\n${patch}'` }
  const { reward, report, metadata } = await grade(t, 'true', { config })
  t.equal(reward, 0)
  t.match(report, { failed_apply_patch: true, resolved: false })
  t.match(metadata, { applied_by: 'patch', apply_output: /missing.txt/, patch_head: /^diff --git/ })
})

t.test('a forged log and a forged result in the agent folder count for nothing', async t => {
  const work = `echo 43 > answer.txt; echo 'PASSED tests/test_answer.py::TestAnswer::test_42' > "$ARTIFACTS_DIR/test_output.txt"
echo 'echo PASSED t::TestAnswer::test_42; echo PASSED t::test_other' > "$SESSION_DIR/logs/test.sh"`
  t.equal((await grade(t, work)).reward, 0)
})

t.test('without a fresh copy the tests run where the agent worked, and nothing is applied', async t => {
  const { reward, metadata } = await grade(t, 'echo 42 > answer.txt', { context: { refreshRuntime: false } })
  t.equal(reward, 1)
  t.equal(metadata['mode'], 'agent_runtime')
  t.notOk('applied_by' in metadata)
})

t.test('evaluation commands see no model key and no gateway', async t => {
  const config = { test_command: 'env | grep -E "sk-secret|127.0.0.1:9" && echo leaked; bash test.sh' }
  const { reward, metadata } = await grade(t, 'echo 42 > answer.txt', { config })
  t.equal(reward, 1)
  t.notMatch(metadata['test_output_tail'], /leaked/)
})

t.test('expected_subset allows further tests, exact does not; full node ids may be named', async t => {
  const expected_output_json = '{"tests/test_answer.py::TestAnswer::test_42": "PASSED"}'
  const exact = await grade(t, 'echo 42 > answer.txt', { config: { expected_output_json } })
  t.equal(exact.reward, 0)
  t.strictSame(exact.report['unexpected'], ['test_other'])
  const subset = await grade(t, 'echo 42 > answer.txt', { config: { expected_output_json, match: 'expected_subset' } })
  t.equal(subset.reward, 1)
})

t.test('a test command that does not end is EVAL_TIMEOUT, with the report so far', async t => {
  const context = await contextOf(t, 'echo 42 > answer.txt')
  const config = { ...CONFIG, test_command: 'echo begun; sleep 300', test_timeout: 0.5 }
  const error = await testOnOutput.evaluate(config, context).catch((cause: unknown) => cause)
  t.match(error, { code: 'EVAL_TIMEOUT', details: { metadata: { report: { test_timeout: true } } } })
  t.equal(readFileSync(join(context.sessionDir, 'artifacts', 'test_output.txt'), 'utf8'), 'begun\n')
})

t.test('a patch command that fails is EVAL_FAILED; so is a missing runtime', async t => {
  const context = await contextOf(t, 'rm -rf .git')
  await t.rejects(testOnOutput.evaluate(CONFIG, context), { code: 'EVAL_FAILED', message: /patch command exited with/ })
  await t.rejects(testOnOutput.evaluate(CONFIG, { ...context, runtime: null }), { code: 'EVAL_FAILED' })
})

t.test('a wrong config is refused at submit with the path of the field', t => {
  const paths = (config: JsonObject) =>
    testOnOutput
      .check({ strategy: 'test_on_output', config, env: {}, refresh_runtime: null })
      .map(problem => problem.path)
      .sort()
  t.strictSame(paths(CONFIG), [])
  t.strictSame(paths({}), ['expected_output_json', 'test_command'])
  t.strictSame(
    paths({ ...CONFIG, repo_dir: ' ', test_command: '', apply_timeout: 0, test_timeout: -1, match: 'some', extra: 1 }),
    ['apply_timeout', 'extra', 'match', 'repo_dir', 'test_command', 'test_timeout'],
  )
  for (const expected_output_json of ['{', '[]', {}, { a: 1 }] as const) {
    t.strictSame(paths({ ...CONFIG, expected_output_json }), ['expected_output_json'])
  }
  t.throws(() => evaluatorPlugin('nope'), {
    code: 'TASK_INVALID',
    message: /wanted one of session_completed, test_on_output/,
  })
  t.end()
})
