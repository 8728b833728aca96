// How commands reach a running service: its URL and token from flags, from what it wrote below stateDir, or from its config.

import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { loadPlan, readEnvironment } from '../config/load.js'
import { readEndpoint, tokenFileOf } from '../config/state-dir.js'
import { RolloutError } from '../domain/errors.js'
import { isObject } from '../domain/json.js'
import { createHttpClient } from '../http/client.js'
import { eventsOf } from '../http/event-stream.js'
import { upstreams } from '../upstreams/registry.js'

export interface ConnectionFlags {
  readonly config?: string
  readonly url?: string
  readonly token?: string
}

/** A task as the service shows it; only what commands read. */
export interface TaskStatus {
  readonly task_id: string
  readonly status: string
  readonly total_sessions: number
  readonly completed_sessions: number
  readonly results: readonly Readonly<Record<string, unknown>>[]
  readonly [more: string]: unknown
}

export interface PublicEvent {
  readonly type: string
  readonly ts: string
  readonly data: Readonly<Record<string, unknown>>
}

export interface Connection {
  readonly url: string
  submit(task: unknown): Promise<Readonly<Record<string, unknown>>>
  /** `waitSeconds`: the answer comes when the task ends, at the latest after this. Throws TASK_UNKNOWN. */
  task(taskId: string, waitSeconds?: number): Promise<TaskStatus>
  cancel(taskId: string, registerIfMissing: boolean): Promise<TaskStatus>
  status(): Promise<Readonly<Record<string, unknown>>>
  /** From now on. Ends when the service stops, or `signal` aborts. */
  events(signal?: AbortSignal): AsyncIterable<PublicEvent>
  close(): Promise<void>
}

const DEFAULT_URL = 'http://127.0.0.1:8080'

/** Adds the flags that every command of this kind takes. */
export const withConnectionFlags = (command: Command): Command =>
  command
    .option('-c, --config <file>', 'config of the service, for its stateDir and port')
    .option('--url <url>', 'URL of the control API')
    .option('--token <token>', 'control token')

/** Order: flags, environment (token), what the service wrote below stateDir, its config, the contract's port. */
export function connect(flags: ConnectionFlags): Connection {
  const plan = loadPlan({ path: flags.config ?? null, profiles: Object.keys(upstreams) })
  const written = flags.url === undefined ? readEndpoint(plan.stateDir) : null
  const { control } = plan
  const configured = control.publicUrl ?? (control.port === 0 ? DEFAULT_URL : `http://${control.host}:${control.port}`)
  const url = (flags.url ?? written?.url ?? configured).replace(/\/+$/, '')
  const token = flags.token ?? readEnvironment().token ?? plan.security.token ?? fileToken(plan.stateDir)
  return connectionTo(url, token)
}

/** A connection to a service whose URL and token are known. */
export function connectionTo(url: string, token: string | null): Connection {
  const client = createHttpClient({ connections: 4 })
  const headers = { 'content-type': 'application/json', ...(token !== null && { 'x-polar-control-token': token }) }

  async function call(method: 'GET' | 'POST' | 'DELETE', path: string, body?: string): Promise<unknown> {
    const answer = await client.request({ method, url: url + path, headers, ...(body !== undefined && { body }) })
    const text = await answer.text()
    if (answer.status >= 200 && answer.status < 300) return JSON.parse(text)
    throw refusal(answer.status, `${method} ${path}`, text)
  }

  return {
    url,
    submit: async task => asObject(await call('POST', '/rollout/task/submit', JSON.stringify(task))),
    task: async (taskId, waitSeconds = 0) =>
      asTask(await call('GET', `/rollout/task/${encodeURIComponent(taskId)}?wait=${waitSeconds}`)),
    cancel: async (taskId, registerIfMissing) =>
      asTask(
        await call('DELETE', `/rollout/task/${encodeURIComponent(taskId)}?register_if_missing=${registerIfMissing}`),
      ),
    status: async () => asObject(await call('GET', '/rollout/status')),
    async *events(signal) {
      const answer = await client.request({
        method: 'GET',
        url: `${url}/events`,
        headers,
        ...(signal && { signal }),
      })
      if (answer.status !== 200) throw refusal(answer.status, 'GET /events', await answer.text())
      for await (const { data } of eventsOf(answer.chunks())) {
        const event = asObject(JSON.parse(data))
        // The stream is our own service's; its frames have these three.
        yield event as unknown as PublicEvent
      }
    },
    close: () => client.close(),
  }
}

function fileToken(stateDir: string): string | null {
  try {
    return readFileSync(tokenFileOf(stateDir), 'utf8').trim() || null
  } catch {
    return null
  }
}

function refusal(status: number, route: string, text: string): RolloutError {
  const code =
    status === 404 ? 'TASK_UNKNOWN' : status === 401 || status === 403 ? 'TASK_UNAUTHENTICATED' : 'TASK_INVALID'
  return new RolloutError(code, `${route} answered ${status}: ${detailText(text)}`, { details: { status } })
}

/** The service's own words: `detail` as text, or one line per problem. */
function detailText(text: string): string {
  try {
    const { detail } = asObject(JSON.parse(text))
    if (typeof detail === 'string') return detail
    if (!Array.isArray(detail)) return text
    return detail
      .map(entry => `\n  ${(entry as { loc: unknown[] }).loc.join('.')}: ${(entry as { msg: string }).msg}`)
      .join('')
  } catch {
    return text
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value
  throw new RolloutError('UPSTREAM_MALFORMED', 'the service answered with something that is no JSON object')
}

function asTask(value: unknown): TaskStatus {
  const task = asObject(value)
  if (typeof task['status'] === 'string' && Array.isArray(task['results'])) return task as TaskStatus
  throw new RolloutError('UPSTREAM_MALFORMED', 'the service answered with something that is no task status')
}
