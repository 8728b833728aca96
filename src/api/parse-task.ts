// Body of POST /rollout/task/submit -> TaskRequest, or every problem with its path, in the contract's 422 form (W-5).

import type { Plan } from '../config/plan.js'
import { formatPath, type Problem, zodProblems } from '../config/problems.js'
import type { Json } from '../domain/json.js'
import type { TaskRequest } from '../domain/task.js'
import { taskProblems } from './checks.js'
import type { TaskPlugins } from './plugins.js'
import { taskSchema } from './task-schema.js'

/** One entry of `detail` in a 422 answer. */
export interface DetailEntry {
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly type: string
}

export type ParsedTask =
  | { readonly ok: true; readonly request: TaskRequest; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly detail: readonly DetailEntry[] }

type ParsePlan = Parameters<typeof taskProblems>[1] & Pick<Plan, 'compat'>

/**
 * Checks the schema first, then plan and plugins; problems of one stage are reported together. With `compat.unknownKeys` "warn",
 * unknown keys are taken out and listed in `warnings`. `body` is not changed.
 */
export function parseTask(body: unknown, plan: ParsePlan, plugins: TaskPlugins): ParsedTask {
  let input = body
  const warnings: string[] = []
  let parsed = taskSchema.safeParse(input)
  if (!parsed.success && plan.compat.unknownKeys === 'warn') {
    const unknown = zodProblems(taskSchema, parsed.error, input).filter(problem => problem.type === 'unknown_key')
    warnings.push(...unknown.map(problem => `ignored ${formatPath(problem.path)}: ${problem.message}`))
    input = without(input, unknown)
    parsed = taskSchema.safeParse(input)
  }
  if (!parsed.success) return refused(zodProblems(taskSchema, parsed.error, input))
  const problems = taskProblems(parsed.data, plan, plugins)
  return problems.length > 0 ? refused(problems) : { ok: true, request: parsed.data, warnings }
}

/** Problems as the contract's `detail`; `loc` starts with where in the request they are. */
export const detailOf = (problems: readonly Problem[], where = 'body'): readonly DetailEntry[] =>
  problems.map(({ path, message, type }) => ({ loc: [where, ...path], msg: message, type }))

const refused = (problems: readonly Problem[]): ParsedTask => ({ ok: false, detail: detailOf(problems) })

/** A deep copy of `input` without the keys that `problems` name. */
function without(input: unknown, problems: readonly Problem[]): unknown {
  const copy: unknown = structuredClone(input)
  for (const { path } of problems) {
    let owner = copy as Record<string | number, Json>
    for (const part of path.slice(0, -1)) owner = owner[part] as unknown as Record<string | number, Json>
    const last = path.at(-1)
    if (last !== undefined) delete owner[last]
  }
  return copy
}
