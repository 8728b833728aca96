// A saved SessionResult (wire JSON) -> what the two renderings show. Reads results of any server that keeps the contract:
// only the contract's keys are required, ours are used where they are there. Pure.

import { z } from 'zod'
import { RolloutError } from '../domain/errors.js'

const ids = z.array(z.int())
const message = z.record(z.string(), z.unknown())
const counts = z.record(z.string(), z.number())

const call = z.looseObject({
  completion_id: z.string().default('?'),
  join: z.string().nullable().default(null),
  start: z.int().min(0),
  end: z.int().min(0),
  trained: z.boolean().default(true),
  set_aside: z.string().nullable().default(null),
  finish_reason: z.string().nullable().default(null),
  policy_version_start: z.string().nullable().default(null),
  policy_version_end: z.string().nullable().default(null),
  message_index: z.int().nullable().default(null),
  started_at_ms: z.number().default(0),
  finished_at_ms: z.number().default(0),
  cached_tokens: z.number().default(0),
  prompt_tokens: z.number().default(0),
})

const filter = z.looseObject({
  masked: z.boolean().default(false),
  reason: z.string().nullable().default(null),
  detail: z.string().nullable().default(null),
})

const trace = z.looseObject({
  prompt_ids: ids,
  response_ids: ids,
  loss_mask: ids,
  response_logprobs: z.array(z.number()).nullable().default(null),
  prompt_messages: z.array(message).default([]),
  response_messages: z.array(message).default([]),
  tools: z.array(message).nullable().default(null),
  finish_reason: z.string().nullable().default(null),
  reward: z.number().nullable().default(null),
  metadata: z
    .looseObject({
      agent: z.string().optional(),
      agent_id: z.string().nullish(),
      break_reason: z.string().nullish(),
      completion_metadata: z.array(call).catch([]),
      training_filter: filter.optional().catch(undefined),
      discarded_loss_mask: ids.optional(),
    })
    .default({ completion_metadata: [] }),
})

const figures = z.looseObject({
  traces: z.number(),
  trainer_tokens: z.number(),
  context_ids_differing: z.number().optional(),
})

const ledger = z.looseObject({
  calls: z.number(),
  failed_calls: z.number().default(0),
  traces: z.number(),
  tokens: z.looseObject({ sampled: z.number(), trained: z.number(), set_aside: counts }),
  joins: counts,
  breaks: counts,
  rules: counts.default({}),
  side_calls: counts.default({}),
  not_trainable: counts.default({}),
  alternatives: z.record(z.string(), figures).default({}),
  per_request: figures.optional(),
  reference: z
    .looseObject({
      traces: z.number(),
      kept_tokens: z.number(),
      lost_tokens: z.number(),
      misplaced_tokens: z.number().default(0),
    })
    .optional(),
})

const result = z.looseObject({
  session_id: z.string(),
  task_id: z.string(),
  status: z.string(),
  node_id: z.string().nullable().default(null),
  error: z.string().nullable().default(null),
  timing: z.record(z.string(), z.unknown()).default({}),
  metadata: z.record(z.string(), z.unknown()).default({}),
  trajectory: z.looseObject({
    status: z.string(),
    error: z.string().nullable().default(null),
    traces: z.array(trace),
    metadata: z
      .looseObject({
        builder: z.string().optional(),
        model_requested: z.string().nullish(),
        model_used: z.string().nullish(),
        api_type: z.string().nullish(),
        ledger: ledger.optional(),
        agent_result: z.looseObject({}).nullish(),
        evaluation: z.looseObject({}).nullish(),
      })
      .default({}),
  }),
})

export type SavedResult = z.output<typeof result>
export type SavedTrace = z.output<typeof trace>
export type SavedCall = z.output<typeof call>
export type SavedLedger = z.output<typeof ledger>

/** Throws TASK_INVALID with `name` and every field that is not as wanted. */
export function readResult(text: string, name: string): SavedResult {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new RolloutError('TASK_INVALID', `${name} is no JSON: ${cause instanceof Error ? cause.message : cause}`)
  }
  const parsed = result.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map(issue => `${issue.path.map(String).join('.') || '(top)'}: ${issue.message}`)
  throw new RolloutError('TASK_INVALID', `${name} is no session result: ${problems.slice(0, 5).join('; ')}`)
}
