// One HTTP exchange at a proxy's port: what is asked, in which dialect, by which session; then the model call, a count, or names.
// What is refused here (no key, not running, no such path, a body that cannot be read) never reaches an engine and is not recorded.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Dialect, HttpRequestHead, RouteMatch } from '../../src/dialects/base.js'
import { detect, nearestDialect } from '../../src/dialects/detect.js'
import type { CanonicalRequest } from '../../src/domain/conversation.js'
import { RolloutError } from '../../src/domain/errors.js'
import { isObject, type JsonObject } from '../../src/domain/json.js'
import { type AnswerWriter, answerWriter } from '../../src/http/answer.js'
import { readBody } from '../../src/http/body.js'
import { EVENTS } from '../../src/observability/events.js'
import { type Continuation, generate, inactive, STOPPING } from './generate.js'
import { modelNames, resolveModel } from './models.js'
import { type Refusal, refusalOf, refuse } from './reply.js'
import { restored } from './restore.js'
import type { ProxyServices } from './services.js'
import { CallCancelled, type RunningCall, type SessionEntry } from './sessions.js'

/** Never rejects. */
export async function serveExchange(
  services: ProxyServices,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answer = answerWriter(response)
  const head = headOf(request)
  if (isGreeting(head)) {
    answer.json(200, { status: 'ok' })
    return
  }
  const detected = detect(head)
  const dialect = detected?.dialect ?? nearestDialect(head)
  try {
    if (detected === null) {
      const message = `${head.method} ${head.path} is no route of a model API`
      refuse(answer, dialect, { status: 404, message, code: 'not_found' })
      return
    }
    const entry = authenticate(services, dialect, head)
    if (!('session' in entry)) {
      refuse(answer, dialect, entry)
      return
    }
    await serveRoute(services, entry, dialect, detected.route, head, request, answer)
  } catch (cause) {
    if (answer.closed) return
    if (!(cause instanceof RolloutError)) {
      services.log.error(EVENTS.exchangeCrash, { dialect: dialect.id, cause })
    }
    if (answer.started) answer.destroy()
    else refuse(answer, dialect, refusalOf(cause, services.addresses))
  }
}

async function serveRoute(
  services: ProxyServices,
  entry: SessionEntry,
  dialect: Dialect,
  route: RouteMatch,
  head: HttpRequestHead,
  request: IncomingMessage,
  answer: AnswerWriter,
): Promise<void> {
  switch (route.operation) {
    case 'models':
    case 'model':
      answer.json(200, dialect.modelsResponse(modelNames(services.plan, entry.session.models), route.model))
      return
    case 'count': {
      const { json } = await readJson(request, services.plan.limits.bodyBytes)
      const { decoded } = decodeCall(services, entry, dialect, route, head, json)
      const { upstream, model } = resolveModel(services.plan, services.targets, entry.session.models, decoded.model)
      const prompt = { ...decoded, messages: (await restored(services, entry, upstream, model, decoded)).messages }
      const tokens = await services.facts.count(upstream, prompt, model)
      if (tokens === null) {
        const message = `upstream ${upstream.plan.id} cannot count tokens`
        refuse(answer, dialect, { status: 404, message, code: 'not_found' })
      } else answer.json(200, dialect.countResponse(tokens))
      return
    }
    case 'generate':
      await serveGeneration(services, entry, dialect, route, head, request, answer)
  }
}

async function serveGeneration(
  services: ProxyServices,
  entry: SessionEntry,
  dialect: Dialect,
  route: RouteMatch,
  head: HttpRequestHead,
  request: IncomingMessage,
  answer: AnswerWriter,
): Promise<void> {
  const startedAtMs = services.clock.now()
  const sequence = entry.nextSequence
  entry.nextSequence += 1
  let finish = () => {}
  const running: RunningCall = {
    abort: new AbortController(),
    body: null,
    isClientGone: false,
    done: new Promise(resolve => {
      finish = resolve
    }),
  }
  entry.running.add(running)
  const readCall = async () => {
    const { text, json } = await readJson(request, services.plan.limits.bodyBytes)
    return { text, ...decodeCall(services, entry, dialect, route, head, json) }
  }
  void answer.delivered.then(isDelivered => {
    if (isDelivered) return
    running.isClientGone = true
    running.abort.abort(new CallCancelled('client-left'))
  })
  try {
    const { text, decoded, goesOn } = await readCall().catch(cause => {
      // Refused before it was a call: the number is free again, unless a later call has taken the next.
      if (entry.nextSequence === sequence + 1) entry.nextSequence = sequence
      throw cause
    })
    const call = { entry, running, sequence, dialect, route, head, answer, body: text, decoded, goesOn, startedAtMs }
    await generate(services, call)
  } finally {
    entry.running.delete(running)
    finish()
  }
}

/** Decodes a call, with the conversation that it goes on from. Throws DIALECT_INVALID_REQUEST, naming an answer that is not stored. */
function decodeCall(
  { rulesOff }: ProxyServices,
  { stored }: SessionEntry,
  dialect: Dialect,
  route: RouteMatch,
  head: HttpRequestHead,
  json: JsonObject,
): { readonly decoded: CanonicalRequest; readonly goesOn: Continuation | null } {
  const previousId = dialect.stored?.previousId(json) ?? null
  const conversation = previousId === null ? null : stored.conversation(previousId)
  const decoded =
    conversation !== null && dialect.stored !== undefined
      ? dialect.stored.decodeContinued(json, conversation, rulesOff)
      : dialect.decodeRequest(json, route, head, rulesOff)
  const items = dialect.stored?.ownItems(json) ?? null
  return { decoded, goesOn: items && { previousId, items } }
}

/** The session of the key, or the refusal. A session named anywhere else in the request is ignored. */
function authenticate(services: ProxyServices, dialect: Dialect, head: HttpRequestHead): SessionEntry | Refusal {
  const key = dialect.sessionKey(head)
  const entry = key === null ? null : services.sessions.findByKey(key)
  if (entry === null) {
    return {
      status: 401,
      message: key === null ? 'no API key was given' : 'the API key is not known',
      code: 'invalid_api_key',
      headers: { 'www-authenticate': 'Bearer' },
    }
  }
  if (services.sessions.isStopping) return STOPPING
  return entry.session.state === 'running' ? entry : inactive(entry.session.state)
}

/** Harnesses knock before they speak; any answer will do. */
const isGreeting = ({ method, path }: HttpRequestHead): boolean =>
  method === 'HEAD' || (method === 'GET' && /^\/$|\/hello$|^\/health$/.test(path))

async function readJson(request: IncomingMessage, maxBytes: number): Promise<{ text: string; json: JsonObject }> {
  const text = (await readBody(request, maxBytes)).toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new RolloutError('DIALECT_INVALID_REQUEST', 'the body is not valid JSON; wanted a JSON object')
  }
  if (!isObject(value)) throw new RolloutError('DIALECT_INVALID_REQUEST', 'the body is JSON, but no object')
  // What JSON.parse gave is JSON all the way down.
  return { text, json: value as JsonObject }
}

function headOf(request: IncomingMessage): HttpRequestHead {
  const target = request.url ?? '/'
  const mark = target.indexOf('?')
  const headers: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(request.headers)) {
    headers[name] = Array.isArray(value) ? value[0] : value
  }
  return {
    method: request.method ?? 'GET',
    path: mark === -1 ? target : target.slice(0, mark),
    query: new URLSearchParams(mark === -1 ? '' : target.slice(mark + 1)),
    headers,
  }
}
