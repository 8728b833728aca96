// Evaluator `test_on_output`: takes the agent's patch, applies it in a fresh copy, runs the tests there and compares their
// results with the expected ones. Reward 1 when they match, else 0; what keeps it from saying so is an error, never a reward.

import { join } from 'node:path'
import { z } from 'zod'
import { RolloutError } from '../domain/errors.js'
import type { JsonObject } from '../domain/json.js'
import type { EvaluationResult } from '../domain/session.js'
import type { Runtime } from '../runtimes/base.js'
import type { EvaluatorContext, EvaluatorPlugin } from './base.js'
import { applyPatch, EvaluationCommands, extractPatch, patchMetadata, patchSettings, repoDir } from './patch.js'
import { compareResults, parseTestLog } from './shared/test-log.js'

const OUTPUT_TAIL = 8_000
const OUTPUT_LIMIT_BYTES = 32 * 1_048_576

const expectedMap = z
  .record(z.string().min(1), z.string())
  .refine(map => Object.keys(map).length > 0, 'wanted at least one test')

const settings = z.strictObject({
  ...patchSettings,
  test_command: z.string().refine(text => text.trim() !== '', 'must not be blank'),
  /** Name or node id -> PASSED, FAILED, ERROR or SKIPPED; an object or its JSON text. */
  expected_output_json: z.union([z.string(), z.record(z.string(), z.unknown())]).transform((value, context) => {
    const parsed = expectedMap.safeParse(typeof value === 'string' ? parseJson(value) : value)
    if (parsed.success) return parsed.data
    context.addIssue({ code: 'custom', message: 'wanted an object of test names and statuses, or its JSON text' })
    return z.NEVER
  }),
  match: z.enum(['exact', 'expected_subset']).default('exact'),
})
type Settings = z.infer<typeof settings>

export const testOnOutput: EvaluatorPlugin = {
  id: 'test_on_output',
  summary: "Applies the agent's patch in a fresh copy, runs the tests there and compares their results.",
  gradesPatch: true,
  check({ config }) {
    const parsed = settings.safeParse(config)
    if (parsed.success) return []
    return parsed.error.issues.flatMap(issue =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.map(key => ({ path: key, message: 'is not a setting of test_on_output' }))
        : [{ path: issue.path.map(String).join('.'), message: issue.message }],
    )
  },
  async evaluate(config, context) {
    const parsed = settings.safeParse(config)
    if (!parsed.success) throw new RolloutError('EVAL_FAILED', `test_on_output: ${z.prettifyError(parsed.error)}`)
    return await grade(parsed.data, context)
  },
}

async function grade(chosen: Settings, context: EvaluatorContext): Promise<EvaluationResult> {
  agentRuntime(context)
  const commands = new EvaluationCommands(context)
  const mode = context.refreshRuntime ? 'fresh_runtime' : 'agent_runtime'
  const fresh = context.refreshRuntime ? await context.freshRuntime() : null
  const patch = await extractPatch(chosen, context, commands, fresh)
  const about = { mode, ...patchMetadata(patch) }
  if (patch.bytes.toString('latin1').trim() === '') {
    return reward(0, { ...about, report: { ...emptyReport, empty_generation: true } })
  }
  let output: JsonObject = {}
  if (fresh !== null) {
    const applied = await applyPatch(patch, chosen, context, commands, fresh)
    output = { applied_by: applied.by, apply_output: applied.output }
    if (!applied.applied) {
      return reward(0, { ...about, ...output, report: { ...emptyReport, failed_apply_patch: true } })
    }
  }
  const graded = await runTests(chosen, context, commands, fresh ?? agentRuntime(context)).catch(cause => {
    if (!(cause instanceof RolloutError) || cause.code !== 'EVAL_TIMEOUT') throw cause
    const metadata = { ...about, ...output, report: { ...emptyReport, test_timeout: true } }
    throw new RolloutError('EVAL_TIMEOUT', cause.message, { details: { metadata }, cause })
  })
  return reward(graded.resolved ? 1 : 0, { ...about, ...output, ...graded.metadata })
}

async function runTests(
  chosen: Settings,
  context: EvaluatorContext,
  commands: EvaluationCommands,
  runtime: Runtime,
): Promise<{ readonly resolved: boolean; readonly metadata: JsonObject }> {
  const log = join(context.artifactsDir, 'test_output.txt')
  // Emptied first: the agent may have left a log of its own making there.
  await agentRuntime(context).writeFile(log, '')
  const request = { command: chosen.test_command, cwd: repoDir(chosen, context), combinedPath: log }
  const result = await commands.run(runtime, 'the test command', request, chosen.test_timeout * 1_000)
  // The whole log, not its tail: a summary may be followed by much else.
  const whole = await agentRuntime(context).readFile(log, OUTPUT_LIMIT_BYTES)
  const text = Buffer.from(whole ?? []).toString('utf8')
  const results = parseTestLog(text)
  const { resolved, missing, unexpected } = compareResults(results, chosen.expected_output_json, chosen.match)
  return {
    resolved,
    metadata: {
      report: {
        ...emptyReport,
        resolved,
        exit_code: result.returnCode,
        match: chosen.match,
        expected_output: chosen.expected_output_json,
        actual_output: results.byName,
        actual_nodes: results.byNode,
        missing,
        unexpected,
      },
      test_output_path: 'artifacts/test_output.txt',
      test_output_tail: text.slice(-OUTPUT_TAIL),
      test_output_truncated: result.unwrittenBytes > 0 || (whole?.length ?? 0) >= OUTPUT_LIMIT_BYTES,
    },
  }
}

const emptyReport = {
  empty_generation: false,
  resolved: false,
  failed_apply_patch: false,
  error_eval: false,
  test_timeout: false,
  exit_code: null,
} as const

function agentRuntime(context: EvaluatorContext): Runtime {
  if (context.runtime === null) throw new RolloutError('EVAL_FAILED', 'there is no runtime of the agent')
  return context.runtime
}

const reward = (outcomeReward: 0 | 1, metadata: JsonObject): EvaluationResult => ({
  strategy: 'test_on_output',
  outcomeReward,
  traceRewards: null,
  outcomeRewardComponents: {},
  metadata,
})

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
