// The routes of the rollout server that this service answers (contract 2.1).

import type { FastifyInstance, FastifyReply } from 'fastify'
import * as z from 'zod'
import { zodProblems } from '../config/problems.js'
import { durationMs } from '../config/schema.js'
import type { JsonObject } from '../domain/json.js'
import { answerWriter } from '../http/answer.js'
import { failpoint } from '../observability/failpoints.js'
import { fail, refuse, refuseQuery } from './answers.js'
import { missingAssets } from './assets.js'
import { effectiveRuntime } from './checks.js'
import { streamEvents } from './event-stream.js'
import { addInferenceRoutes } from './inference-routes.js'
import { parseTask } from './parse-task.js'
import type { ControlOptions, NodeInfo, UpstreamStatus } from './ports.js'
import { addResultRoutes } from './result-routes.js'
import { type EncodeResult, type TaskSnapshot, taskStatusJson } from './task-json.js'

/** Long polls end by themselves after this. */
const LONGEST_WAIT_MS = 300_000
const JSON_TYPE = 'application/json; charset=utf-8'
const TERMINAL: readonly string[] = ['completed', 'failed', 'cancelled']

const wait = z
  .string()
  .refine(text => waitMs(text) !== null, 'wanted seconds, or a duration like "30s", up to 5 minutes')
  .optional()
const taskQuery = z.strictObject({
  wait,
  generation: z
    .string()
    .regex(/^[1-9]\d{0,8}$/, 'wanted a whole number from 1')
    .optional(),
  results: z.enum(['full', 'references']).default('full'),
})
const resultQuery = taskQuery.pick({ generation: true })
const cancelQuery = z.strictObject({
  register_if_missing: z.enum(['true', 'false', '1', '0', 'True', 'False']).default('false'),
})
const eventsQuery = z.strictObject({ last_event_id: z.string().optional() })

export function addRoutes(server: FastifyInstance, options: ControlOptions): void {
  const { ports, encode, encodeReference } = options
  const formOf = (form: 'full' | 'references', generation: number): EncodeResult =>
    form === 'full' ? encode : result => encodeReference(result, generation)

  server.get('/', async () => ({ status: 'ok', service: 'sextant' }))
  server.get('/health', async () => ({ status: 'ok', nodes: 1, upstreams: ports.upstreams().map(upstreamJson) }))

  server.post('/rollout/task/submit', async (request, reply) => {
    const parsed = parseTask(request.body, options.plan, options.plugins)
    if (!parsed.ok) return fail(reply, 422, parsed.detail)
    const runtime = effectiveRuntime(parsed.request, options.plan)
    const missing = runtime === null ? [] : await missingAssets(runtime)
    if (missing.length > 0) return refuse(reply, { code: 'TASK_ASSETS_MISSING', message: missing.join('; ') })
    failpoint('submit.parsed')
    const submitted = await ports.submit(parsed.request)
    if (!submitted.ok) return refuse(reply, submitted.error)
    reply.raw.once('finish', () => failpoint('submit.answered'))
    const warnings = [...parsed.warnings, ...submitted.warnings]
    return { task_id: submitted.taskId, status: 'running', ...(warnings.length > 0 && { warnings }) }
  })

  server.get<{ Params: { task_id: string } }>('/rollout/task/:task_id', async (request, reply) => {
    const query = parsed(taskQuery, request.query, reply)
    if (query === null) return reply
    const { task_id } = request.params
    const generation = generationIn(query)
    const closed = new AbortController()
    request.raw.once('close', () => closed.abort())
    const task = await awaited(options, task_id, generation, waitMs(query.wait ?? '0') ?? 0, closed.signal)
    return task === null
      ? fail(reply, 404, unknownTask(task_id))
      : reply.type(JSON_TYPE).send(taskStatusJson(task, formOf(query.results, task.generation)))
  })

  server.delete<{ Params: { task_id: string } }>('/rollout/task/:task_id', async (request, reply) => {
    const query = parsed(cancelQuery, request.query, reply)
    if (query === null) return reply
    const { task_id } = request.params
    const task = await ports.cancel(task_id, /^(true|1)$/i.test(query.register_if_missing))
    return task === null
      ? fail(reply, 404, unknownTask(task_id))
      : reply.type(JSON_TYPE).send(taskStatusJson(task, encode))
  })

  server.get('/rollout/status', async () => {
    const [{ tasks, pendingSessions }, node] = await Promise.all([ports.list(), ports.node()])
    return {
      tasks: Object.fromEntries(tasks.map(({ taskId, status }) => [taskId, status])),
      pipeline: { pending_sessions: pendingSessions },
      nodes: { nodes: [nodeJson(node, options)] },
      upstreams: ports.upstreams().map(upstream => ({ ...upstreamJson(upstream), findings: findingsJson(upstream) })),
    }
  })

  // A bare list: how a trainer's bridge finds the gateways that it pauses. Their admin routes are served here.
  server.get('/nodes', async request => {
    const controlUrl = options.plan.control.publicUrl ?? `${request.protocol}://${request.host}`
    return [{ ...nodeJson(await ports.node(), options), gateway_url: controlUrl }]
  })
  addInferenceRoutes(server, options)
  addResultRoutes(server, options, (query, reply) => {
    const asked = parsed(resultQuery, query, reply)
    return asked && { generation: generationIn(asked) }
  })

  server.get('/events', async (request, reply) => {
    const query = parsed(eventsQuery, request.query, reply)
    if (query === null) return reply
    const header = request.headers['last-event-id']
    const lastEventId = (typeof header === 'string' ? header : query.last_event_id) ?? null
    reply.hijack()
    const writer = answerWriter(reply.raw)
    await streamEvents(writer, { hub: options.hub, clock: options.clock, lastEventId })
    await writer.delivered
    // A stream that the close of the server has ended leaves a connection that became idle too late to be closed with the others.
    if (!server.server.listening) server.server.closeIdleConnections()
    return reply
  })
}

const generationIn = ({ generation }: { readonly generation?: string | undefined }): number | null =>
  generation === undefined ? null : Number(generation)

const unknownTask = (taskId: string): string => `there is no task ${JSON.stringify(taskId.slice(0, 128))}`

/** The query as parsed; null = refused, and answered. */
function parsed<S extends z.ZodType>(schema: S, query: unknown, reply: FastifyReply): z.output<S> | null {
  const result = schema.safeParse(query)
  if (result.success) return result.data
  refuseQuery(reply, zodProblems(schema, result.error, query))
  return null
}

function waitMs(text: string): number | null {
  const ms = /^\d+(\.\d+)?$/.test(text) ? Math.round(Number(text) * 1000) : durationMs(text)
  return ms !== null && ms <= LONGEST_WAIT_MS ? ms : null
}

/** The task, once it has ended or `ms` has passed; null = unknown. */
async function awaited(
  { ports, hub, clock }: ControlOptions,
  taskId: string,
  generation: number | null,
  ms: number,
  closed: AbortSignal,
): Promise<TaskSnapshot | null> {
  // Subscribed before the first look, so that an end between look and wait is not missed.
  const subscription = hub.subscribe(null)
  const stop = () => subscription.close()
  closed.addEventListener('abort', stop, { once: true })
  const timer = new AbortController()
  try {
    const task = await ports.task(taskId, generation)
    if (task === null || ms === 0 || TERMINAL.includes(task.status)) return task
    clock.sleep(ms, timer.signal).then(stop, () => undefined)
    while (!subscription.closed) {
      const taken = subscription.take()
      if (taken === null) await subscription.ready()
      else if (taken.dropped > 0 || (taken.event.type === 'task.completed' && taken.event.data['task_id'] === taskId)) {
        const now = await ports.task(taskId, generation)
        if (now === null || TERMINAL.includes(now.status)) return now
      }
    }
    return await ports.task(taskId, generation)
  } finally {
    timer.abort()
    closed.removeEventListener('abort', stop)
    stop()
  }
}

/** Open to anybody: no addresses. */
const upstreamJson = ({ id, profile, verdict, report }: UpstreamStatus) => ({
  id,
  profile,
  verdict,
  reasons: report?.reasons ?? [],
})

const findingsJson = ({ report }: UpstreamStatus) =>
  report?.findings.map(({ check, outcome, reason, seen, cure }) => ({ check, outcome, reason, seen, cure })) ?? []

function nodeJson(node: NodeInfo, { clock }: ControlOptions): JsonObject {
  const { metrics } = node
  return {
    node_id: node.nodeId,
    gateway_url: node.gatewayUrl,
    max_init_workers: node.workers.init,
    max_run_workers: node.workers.running,
    max_postrun_workers: node.workers.postrun,
    heartbeat_interval_seconds: 30,
    metrics: {
      init_queue_depth: metrics?.initQueueDepth ?? 0,
      init_inflight: metrics?.initInflight ?? 0,
      ready_depth: metrics?.readyDepth ?? 0,
      run_inflight: metrics?.runInflight ?? 0,
      postrun_queue_depth: metrics?.postrunQueueDepth ?? 0,
      postrun_inflight: metrics?.postrunInflight ?? 0,
    },
    dispatch_reservations: 0,
    healthy: metrics !== null,
    draining: node.draining,
    last_heartbeat: new Date(clock.now()).toISOString(),
  }
}
