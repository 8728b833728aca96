// The embedded inference server: vLLM's or SGLang's wire over HTTP on loopback, in front of the scripted policy. Default upstream of the
// quickstart and of the tests. It samples real token ids and reports their true probabilities; nothing in it is a language model.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { SimulationPlan } from '../config/plan.js'
import type { Clock } from '../domain/clock.js'
import { RolloutError } from '../domain/errors.js'
import { isObject, type JsonObject } from '../domain/json.js'
import { loadTokenizer, type Tokenizer } from '../tokenizer/tokenizer.js'
import { answerStream, answerWhole, Disconnect, type Engine, MidstreamFailure, prepare, promptIds } from './chat.js'
import { vllmWire } from './chat-wire.js'
import { type Sampler, sampler } from './distribution.js'
import { EngineError } from './errors.js'
import { type Faults, faultsOf } from './faults.js'
import { createPolicy, driftForms } from './policy/policy.js'
import { prefixCache } from './prefix-cache.js'
import { seededRandom } from './random.js'
import { parseChatRequest, refuseForeignFields } from './request.js'
import { sglangWire } from './sglang-wire.js'

const BODY_LIMIT = 64 * 1024 * 1024
/** Agents come back after long tool calls: Node's own 5 s would reset the connection under them. */
const KEEP_ALIVE_MS = 10 * 60_000

export interface SimulationOptions {
  readonly plan: SimulationPlan
  readonly clock: Clock
  /** Default: the bundled Qwen3 tokenizer. */
  readonly tokenizer?: Tokenizer
  /** Default: the honest one. A test plants a lie here. */
  readonly sampler?: Sampler
}

export interface SimulationLoad {
  readonly running: number
  readonly finished: number
  /** Generations whose client went away before the end. */
  readonly aborted: number
}

export interface Simulation {
  /** `http://127.0.0.1:PORT`; chat is under `/v1`. */
  readonly url: string
  readonly port: number
  load(): SimulationLoad
  /** Stops listening and aborts what runs. */
  close(): Promise<void>
}

/** Listens on `plan.port` (0 = any free one) of 127.0.0.1. Throws CONFIG_INVALID for unknown drift forms; rejects when the port is taken. */
export async function startSimulation(options: SimulationOptions): Promise<Simulation> {
  const { plan, clock } = options
  const drift = driftForms(plan.drift)
  const tokenizer = options.tokenizer ?? loadTokenizer('qwen3')
  let unseeded = 0
  const engine: Engine = {
    tokenizer,
    policy: createPolicy(tokenizer, { solveProbability: plan.solveProbability, drift }),
    sampler: options.sampler ?? sampler(plan.logprobsMode ?? 'raw_logprobs'),
    cache: prefixCache(),
    clock,
    modelName: plan.modelName,
    adapters: new Set(plan.adapters),
    contextWindow: plan.contextWindow,
    unseeded: () => seededRandom(plan.seed, 'unseeded', unseeded++),
    prefillMsPer1k: plan.prefillMsPer1k,
    decodeMsPerToken: plan.decodeMsPerToken,
    drift,
    wire: plan.wire === 'sglang' ? sglangWire : vllmWire,
  }
  const planted = plan.faults ?? []
  let calls = 0
  const load = { running: 0, finished: 0, aborted: 0 }
  const running = new Set<AbortController>()
  const server = createServer((request, response) => {
    const controller = new AbortController()
    running.add(controller)
    response.on('close', () => {
      running.delete(controller)
      if (!response.writableFinished) controller.abort(new Error('the client has gone'))
    })
    void respond(engine, load, () => faultsOf(planted, ++calls), request, response, controller.signal)
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.requestTimeout = 0
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(plan.port, '127.0.0.1', () => resolve())
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : plan.port
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    load: () => ({ ...load }),
    close: () =>
      new Promise(resolve => {
        for (const controller of running) controller.abort(new Error('the server is closing'))
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

type Counters = { -readonly [K in keyof SimulationLoad]: SimulationLoad[K] }

async function respond(
  engine: Engine,
  load: Counters,
  nextFaults: () => Faults,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  let isFlat = engine.wire.hasFlatErrors
  try {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname
    const route = ROUTES[path]
    if (route === undefined) return sendJson(response, 404, { detail: 'Not Found' })
    if (request.method !== route.method) return sendJson(response, 405, { detail: 'Method Not Allowed' })
    const body = route.method === 'POST' ? await readJson(request) : {}
    if (path !== '/v1/chat/completions') return sendJson(response, 200, route.answer(engine, body, load))
    const faults = nextFaults()
    if (faults('other_error_shape')) isFlat = !isFlat
    load.running += 1
    try {
      await chat(engine, body, faults, response, signal)
      load.finished += 1
    } catch (cause) {
      if (signal.aborted) load.aborted += 1
      throw cause
    } finally {
      load.running -= 1
    }
  } catch (cause) {
    // After the head only the connection can tell of a failure.
    if (signal.aborted || response.headersSent || cause instanceof Disconnect) response.destroy()
    else sendError(response, cause, isFlat)
  }
}

async function chat(
  engine: Engine,
  body: unknown,
  faults: Faults,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  if (faults('server_error')) throw new EngineError(500, 'Internal server error')
  if (faults('overloaded')) throw new EngineError(429, 'The server is overloaded, please try again later.')
  if (faults('strict_fields')) refuseForeignFields(body)
  const prepared = prepare(engine, parseChatRequest(body), faults)
  if (!prepared.request.stream) return sendJson(response, 200, await answerWhole(engine, prepared, signal))
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  // One listener for all chunks: a write to a client that has gone may never call back.
  let fail: (reason: unknown) => void = () => {}
  signal.addEventListener('abort', () => fail(signal.reason), { once: true })
  const send = (data: string): Promise<void> =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted()
      fail = reject
      response.write(`data: ${data}\n\n`, failure => (failure ? reject(failure) : resolve()))
    })
  try {
    await answerStream(engine, prepared, send, signal)
  } catch (cause) {
    if (!(cause instanceof MidstreamFailure)) throw cause
    await send(JSON.stringify(cause.body(false)))
    await send('[DONE]')
  }
  await new Promise<void>(resolve => response.end(resolve))
}

interface Route {
  readonly method: 'GET' | 'POST'
  answer(engine: Engine, body: unknown, load: SimulationLoad): JsonObject | null
}

const ROUTES: Readonly<Record<string, Route>> = {
  '/v1/chat/completions': { method: 'POST', answer: () => null },
  '/health': { method: 'GET', answer: () => null },
  '/load': { method: 'GET', answer: (_engine, _body, { running }) => ({ server_load: running }) },
  '/v1/models': {
    method: 'GET',
    answer: ({ modelName, adapters, contextWindow, clock, wire }) => ({
      object: 'list',
      data: [modelName, ...adapters].map(id => ({
        id,
        object: 'model',
        created: Math.floor(clock.now() / 1000),
        owned_by: wire === sglangWire ? 'sglang' : 'vllm',
        root: id,
        parent: id === modelName ? null : modelName,
        max_model_len: contextWindow,
      })),
    }),
  },
  '/tokenize': {
    method: 'POST',
    answer: (engine, body) => {
      const ids = tokenize(engine, body)
      const wantsTexts = isObject(body) && body['return_token_strs'] === true
      return {
        count: ids.length,
        max_model_len: engine.contextWindow,
        tokens: [...ids],
        token_strs: wantsTexts ? [...ids].map(id => engine.tokenizer.decode([id])) : null,
      }
    },
  },
  '/detokenize': {
    method: 'POST',
    answer: ({ tokenizer, wire }, body) => {
      const ids: unknown = isObject(body) ? body['tokens'] : undefined
      const fits = (id: unknown): id is number => Number.isInteger(id) && Number(id) >= 0 && Number(id) < tokenizer.size
      if (!Array.isArray(ids) || !ids.every(fits)) {
        throw new EngineError(400, `tokens: wanted a list of ids below ${tokenizer.size}`, 'tokens')
      }
      return { [wire.detokenizedKey]: tokenizer.decode(ids) }
    },
  },
}

function tokenize(engine: Engine, body: unknown): Int32Array {
  if (isObject(body) && typeof body['prompt'] === 'string') return engine.tokenizer.encode(body['prompt'])
  const takes = engine.wire.tokenizesChats
  if (!takes || !isObject(body) || !Array.isArray(body['messages']))
    throw new EngineError(400, takes ? 'wanted `prompt` or `messages`' : 'wanted `prompt`', 'prompt')
  return promptIds(engine, parseChatRequest(body), body['add_generation_prompt'] !== false)
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    // no encoding is set, so chunks are buffers
    bytes += chunk.length
    if (bytes > BODY_LIMIT) throw new EngineError(413, `the body is over ${BODY_LIMIT} bytes`)
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    throw new EngineError(400, 'the body is no JSON')
  }
}

function sendJson(response: ServerResponse, status: number, body: JsonObject | null): void {
  const text = body === null ? '' : JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}

function sendError(response: ServerResponse, cause: unknown, isFlat: boolean): void {
  const error =
    cause instanceof EngineError
      ? cause
      : cause instanceof RolloutError && cause.code === 'DIALECT_INVALID_REQUEST'
        ? new EngineError(400, cause.message, 'messages')
        : new EngineError(500, cause instanceof Error ? cause.message : String(cause))
  if (error.status === 429) response.setHeader('retry-after', '1')
  sendJson(response, error.status, error.body(isFlat))
}
