// Pause and resume of model calls for updates of the weights (contract 5.1, 6.7), and the node list by which a trainer's bridge finds
// whom to pause. Fields beyond the contract's four: owner, lease, mode, waiting calls, name of the weights.

import type { FastifyInstance, FastifyReply } from 'fastify'
import * as z from 'zod'
import { zodProblems } from '../config/problems.js'
import type { InferenceStatus } from '../domain/inference.js'
import type { JsonObject } from '../domain/json.js'
import { fail, refuseQuery } from './answers.js'
import { detailOf } from './parse-task.js'
import type { ControlOptions } from './ports.js'

/** Of a pause that names no owner: the bridge's. */
const DEFAULT_OWNER = 'trainer'
/** The contract's own. */
const DEFAULT_TIMEOUT_SECONDS = 300
/** Longer than any update of weights that was seen; a bridge that died holds the agents no longer than this. */
const DEFAULT_LEASE_SECONDS = 1_800
const LONGEST_SECONDS = 86_400

const seconds = z.coerce.number().gt(0).max(LONGEST_SECONDS)
const owner = z.string().min(1).max(128).default(DEFAULT_OWNER)
const pauseSchema = z.strictObject({
  timeout_seconds: seconds.default(DEFAULT_TIMEOUT_SECONDS),
  lease_seconds: seconds.default(DEFAULT_LEASE_SECONDS),
  owner,
  mode: z.enum(['wait', 'keep']).default('wait'),
})
const resumeSchema = z.strictObject({
  owner,
  policy_version: z
    .union([z.string().min(1).max(256), z.int()])
    .transform(String)
    .nullable()
    .default(null),
  force: z.stringbool().or(z.boolean()).default(false),
})

export function addInferenceRoutes(server: FastifyInstance, options: ControlOptions): void {
  const { ports } = options

  server.get('/admin/inference/status', async () => statusJson(await ports.inference(), options))

  server.post('/admin/inference/pause', async (request, reply) => {
    const asked = parsed(pauseSchema, request.query, request.body, reply)
    if (asked === null) return reply
    const { timeout_seconds: timeout, lease_seconds: lease } = asked
    const result = await ports.pause({
      owner: asked.owner,
      mode: asked.mode,
      leaseMs: lease * 1000,
      timeoutMs: timeout * 1000,
    })
    if ('heldBy' in result) return fail(reply, 409, heldBy(result.heldBy))
    if (result.pause === null) return fail(reply, 409, 'the pause was ended while it drained')
    const isDrained = result.isComplete && result.inflight === 0
    if (asked.mode === 'wait' && !isDrained) {
      const calls = `${result.inflight} model calls still run${result.isComplete ? '' : ', and not every proxy has answered'}`
      const until = new Date(result.pause.leaseUntilMs).toISOString()
      return fail(
        reply,
        504,
        `not drained within ${timeout} s: ${calls}. It stays paused until it is resumed, or its lease ends (${until}).`,
      )
    }
    return statusJson(result, options)
  })

  server.post('/admin/inference/resume', async (request, reply) => {
    const asked = parsed(resumeSchema, request.query, request.body, reply)
    if (asked === null) return reply
    const result = await ports.resume({
      owner: asked.owner,
      force: asked.force,
      policyVersion: asked.policy_version,
    })
    return 'heldBy' in result ? fail(reply, 409, heldBy(result.heldBy)) : statusJson(result, options)
  })
}

const heldBy = (name: string): string => `paused by ${JSON.stringify(name)}: name that owner, or resume with force=true`

/** Query and body together; the query stands above. null = refused, and answered. */
function parsed<S extends z.ZodType>(
  schema: S,
  query: unknown,
  body: unknown,
  reply: FastifyReply,
): z.output<S> | null {
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body)
  if (body !== undefined && body !== null && !isObject) {
    fail(reply, 422, detailOf([{ path: [], message: 'wanted a JSON object', type: 'object_type' }], 'body'))
    return null
  }
  const given = { ...(isObject && body), ...(query as object) }
  const result = schema.safeParse(given)
  if (result.success) return result.data
  refuseQuery(reply, zodProblems(schema, result.error, given))
  return null
}

function statusJson(status: InferenceStatus, { plan }: ControlOptions): JsonObject {
  const { pause } = status
  const first = plan.upstreams[0]
  return {
    paused: pause !== null,
    inflight: status.inflight,
    base_url: first?.urls[0] ?? null,
    engine: first?.profile ?? null,
    waiting: status.waiting,
    policy_version: status.policyVersion,
    owner: pause?.owner ?? null,
    mode: pause?.mode ?? null,
    paused_since: pause === null ? null : new Date(pause.sinceMs).toISOString(),
    lease_until: pause === null ? null : new Date(pause.leaseUntilMs).toISOString(),
    complete: status.isComplete,
  }
}
