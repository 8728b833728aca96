// The quickstart as a client of the service's HTTP API, like any trainer: submit, follow events, fetch results.

import { RolloutError } from '../../domain/errors.js'
import { isObject } from '../../domain/json.js'
import type { HttpClient } from '../../http/client.js'
import { eventsOf } from '../../http/event-stream.js'
import type { ProgressEvent } from './progress.js'

export interface ServiceClient {
  /** Throws TASK_INVALID with the service's own words. */
  submit(task: unknown): Promise<void>
  /** The task's status object, with all results so far. */
  task(taskId: string): Promise<{ readonly status: string; readonly results: readonly unknown[] }>
  /** Events from now on, until the stream ends or `signal` aborts. Resolves to the iterator once the stream stands. */
  events(signal: AbortSignal): Promise<AsyncIterable<ProgressEvent>>
}

export function serviceClient(http: HttpClient, controlUrl: string, token: string | null): ServiceClient {
  const headers = { 'content-type': 'application/json', ...(token !== null && { 'x-polar-control-token': token }) }

  async function json(method: 'GET' | 'POST', path: string, body?: unknown): Promise<unknown> {
    const answer = await http.request({
      method,
      url: controlUrl + path,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (answer.status !== 200)
      throw new RolloutError('TASK_INVALID', `${method} ${path} answered ${answer.status}: ${text}`)
    return JSON.parse(text)
  }

  return {
    submit: async task => {
      await json('POST', '/rollout/task/submit', task)
    },
    task: async taskId => {
      const status = await json('GET', `/rollout/task/${taskId}`)
      if (!isObject(status) || typeof status.status !== 'string' || !Array.isArray(status.results)) {
        throw new RolloutError('INTERNAL_BUG', `GET /rollout/task/${taskId} is no task status`)
      }
      return { status: status.status, results: status.results }
    },
    events: async signal => {
      const answer = await http.request({
        method: 'GET',
        url: `${controlUrl}/events`,
        headers,
        signal,
        bodyTimeoutMs: 0,
      })
      if (answer.status !== 200) throw new RolloutError('INTERNAL_BUG', `GET /events answered ${answer.status}`)
      return parsed(eventsOf(answer.chunks()))
    },
  }
}

async function* parsed(events: AsyncIterable<{ readonly data: string }>): AsyncGenerator<ProgressEvent> {
  for await (const { data } of events) {
    const event: unknown = JSON.parse(data)
    if (isObject(event) && typeof event.type === 'string' && isObject(event.data))
      yield { type: event.type, data: event.data }
  }
}
