// One task -> the specs of its samples: seeds, budgets and metadata resolved. Pure; the request is not changed.

import { seedBase } from '../../src/api/task-schema.js'
import type { SessionId, TaskId } from '../../src/domain/ids.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { SessionSpec } from '../../src/domain/session.js'
import type { RuntimeSpec, TaskRequest } from '../../src/domain/task.js'

/**
 * Spec of sample `index`. Seeds: with `metadata.eval_sampling_seed_base` = b the sample has b + index, also in
 * `agent.settings.sampling_seed` and `metadata.eval_sampling_seed` (contract 4.8); else with `sampling.seed` = s it has s + index.
 */
export function sessionSpec(request: TaskRequest, runtime: RuntimeSpec, sessionId: string, index: number): SessionSpec {
  const base = seedBase(request.metadata)
  const { seed } = request.sampling
  const samplingSeed = base !== null ? base + index : seed !== undefined ? seed.value + index : null
  const timeout = request.metadata['agent_timeout']
  return {
    // Made by the interpreter as `s-<uuid4>`; the task id was checked at submit.
    sessionId: sessionId as SessionId,
    taskId: request.task_id as TaskId,
    sampleIndex: index,
    instruction: request.instruction,
    priority: request.dispatch_priority,
    timeoutSeconds: request.timeout_seconds,
    agentTimeoutSeconds: typeof timeout === 'number' ? timeout : null,
    runtime,
    agent:
      base === null
        ? request.agent
        : { ...request.agent, settings: { ...request.agent.settings, sampling_seed: base + index } },
    builder: request.builder,
    evaluator: request.evaluator,
    sampling:
      seed === undefined ? request.sampling : { ...request.sampling, seed: { ...seed, value: seed.value + index } },
    samplingSeed,
    limits: request.limits,
    models: request.models,
    metadata: sampleMetadata(request, index),
  }
}

/** The task's metadata as a sample gets it. */
export function sampleMetadata(request: TaskRequest, index: number): JsonObject {
  const base = seedBase(request.metadata)
  return base === null ? request.metadata : { ...request.metadata, eval_sampling_seed: base + index }
}

/** The training run a task belongs to, for fair shares; tasks that name none share one. */
export const runOf = (request: TaskRequest): string => {
  const run = request.metadata['run_id']
  return typeof run === 'string' ? run : ''
}
