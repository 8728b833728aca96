// What a task request must hold besides its schema: limits of this service, plugins that exist and accept their settings, names of
// models, protected environment, callback URL. Returns problems with paths below the body; an empty list = the task is accepted.

import type { Plan } from '../config/plan.js'
import { nearestName, type Problem, type ProblemPath, parsePath } from '../config/problems.js'
import type { TaskRequest } from '../domain/task.js'
import { type EnvironmentLayer, environmentNameProblems } from '../runtimes/environment.js'
import { callbackProblem } from './callback-url.js'
import type { TaskPlugins } from './plugins.js'

type CheckedPlan = Pick<Plan, 'limits' | 'models' | 'defaultRuntime'> & {
  readonly security: Pick<Plan['security'], 'callbackHosts'>
}

/** The runtime a task runs in: its own, else the service's default. */
export const effectiveRuntime = (task: TaskRequest, plan: Pick<Plan, 'defaultRuntime'>) =>
  task.runtime ?? plan.defaultRuntime

export function taskProblems(task: TaskRequest, plan: CheckedPlan, plugins: TaskPlugins): readonly Problem[] {
  return [
    ...limitProblems(task, plan),
    ...runtimeProblems(task, plan, plugins),
    ...agentProblems(task, plugins),
    ...strategyProblems(task, plan, plugins),
    ...modelProblems(task, plan),
    ...environmentProblems(task),
    ...callbackProblems(task, plan),
  ]
}

function limitProblems(task: TaskRequest, plan: CheckedPlan): readonly Problem[] {
  const limit = plan.limits.samplesPerTask
  if (task.num_samples <= limit) return []
  return [problem(['num_samples'], `wanted at most ${limit} (limits.samplesPerTask), got ${task.num_samples}`)]
}

function runtimeProblems(task: TaskRequest, plan: CheckedPlan, plugins: TaskPlugins): readonly Problem[] {
  const runtime = effectiveRuntime(task, plan)
  if (runtime === null) return [problem(['runtime'], 'required: this service has no defaultRuntime', 'missing')]
  const found: Problem[] = []
  if (runtime.import_path !== null) found.push(importPathProblem(['runtime', 'import_path'], runtime.import_path))
  const plugin = plugins.runtimes[runtime.backend]
  if (!plugin)
    return [...found, unknownName(['runtime', 'backend'], 'runtime', runtime.backend, Object.keys(plugins.runtimes))]
  return [...found, ...below(['runtime'], plugin.check(runtime))]
}

function agentProblems({ agent }: TaskRequest, plugins: TaskPlugins): readonly Problem[] {
  if (agent.import_path !== null) return [importPathProblem(['agent', 'import_path'], agent.import_path)]
  if (agent.harness === null) return []
  const preset = plugins.harnesses[agent.harness]
  if (!preset) return [unknownName(['agent', 'harness'], 'harness', agent.harness, Object.keys(plugins.harnesses))]
  return below(['agent'], preset.check(agent))
}

function strategyProblems(task: TaskRequest, plan: CheckedPlan, plugins: TaskPlugins): readonly Problem[] {
  const found: Problem[] = []
  const { builder, evaluator } = task
  const builderPlugin = plugins.builders[builder.strategy]
  if (builderPlugin) found.push(...below(['builder', 'config'], builderPlugin.check(builder.config)))
  else found.push(strategyMissing(['builder', 'strategy'], 'builder', builder.strategy, Object.keys(plugins.builders)))
  if (evaluator === null) return found
  const evaluatorPlugin = plugins.evaluators[evaluator.strategy]
  if (!evaluatorPlugin)
    return [
      ...found,
      strategyMissing(['evaluator', 'strategy'], 'evaluator', evaluator.strategy, Object.keys(plugins.evaluators)),
    ]
  found.push(...below(['evaluator', 'config'], evaluatorPlugin.check(evaluator)))
  const repoDir = evaluator.config['repo_dir']
  if (effectiveRuntime(task, plan)?.backend === 'local' && typeof repoDir === 'string' && repoDir.startsWith('/'))
    found.push(
      problem(['evaluator', 'config', 'repo_dir'], 'wanted a path relative to the workspace of runtime "local"'),
    )
  return found
}

function modelProblems(task: TaskRequest, plan: CheckedPlan): readonly Problem[] {
  const aliases = Object.keys(plan.models)
  return Object.entries(task.models).flatMap(([name, alias]) =>
    aliases.includes(alias) ? [] : [unknownName(['models', name], 'model alias of this service', alias, aliases)],
  )
}

/** Names that would break the attribution of calls, or reach past the session. */
function environmentProblems({ runtime, agent, evaluator }: TaskRequest): readonly Problem[] {
  const maps: readonly (readonly [ProblemPath, Readonly<Record<string, string>>, EnvironmentLayer])[] = [
    [['runtime', 'env'], runtime?.env ?? {}, 'runtime'],
    [['agent', 'env'], agent.env, 'agent'],
    [['agent', 'custom_shell', 'env'], agent.custom_shell?.env ?? {}, 'step'],
    [['evaluator', 'env'], evaluator?.env ?? {}, 'evaluator'],
  ]
  return maps.flatMap(([path, map, layer]) =>
    environmentNameProblems(map, layer).map(({ name, message }) => problem([...path, name], message)),
  )
}

function callbackProblems(task: TaskRequest, plan: CheckedPlan): readonly Problem[] {
  if (task.callback_url === null) return []
  const message = callbackProblem(task.callback_url, plan.security.callbackHosts)
  return message === null ? [] : [problem(['callback_url'], message)]
}

const problem = (path: ProblemPath, message: string, type = 'custom'): Problem => ({ path, message, type })

/** Plugins report paths below the part they own, as text. */
const below = (
  base: ProblemPath,
  found: readonly { readonly path: string; readonly message: string }[],
): readonly Problem[] => found.map(({ path, message }) => problem([...base, ...parsePath(path)], message))

function unknownName(path: ProblemPath, kind: string, name: string, known: readonly string[]): Problem {
  const nearest = nearestName(name, known)
  const hint = nearest === null ? `wanted one of ${known.join(', ')}` : `did you mean "${nearest}"?`
  return problem(path, `there is no ${kind} "${name.slice(0, 60)}"; ${hint}`)
}

function strategyMissing(path: ProblemPath, kind: string, name: string, known: readonly string[]): Problem {
  return name.includes(':') || name.startsWith('./')
    ? importPathProblem(path, name)
    : unknownName(path, kind, name, known)
}

/** Python classes cannot run here (contract 10.2); modules of other languages are told apart by their form. */
function importPathProblem(path: ProblemPath, name: string): Problem {
  const python = /^[A-Za-z_][\w.]*:[A-Za-z_]\w*$/.test(name) || /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$/.test(name)
  return problem(
    path,
    python
      ? `"${name.slice(0, 60)}" is a Python import path, and this service runs JavaScript: name a plugin of the service instead`
      : 'this service loads no modules named by a task: name a plugin of the service instead',
  )
}
