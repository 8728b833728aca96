// A small inference server of vLLM's wire shape whose answers are data: ids and logprobs, streamed or whole, errors, breaks, waits.
// It keeps what it was asked and sees when a connection is closed under it. Loopback, port 0, closed at the end of the test.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JsonObject } from '../../src/domain/json.js'

export interface ScriptedAnswer {
  /** Other than 200: `error` is the body. */
  readonly status?: number
  readonly error?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly reasoning?: string
  /** Pieces of the text, one chunk each when streaming. */
  readonly pieces?: readonly string[]
  readonly toolCalls?: readonly { readonly id?: string; readonly name: string; readonly arguments: string }[]
  readonly finish?: string | null
  readonly stopReason?: string
  /** Default [1, 2, 3]; null = none are sent. */
  readonly promptIds?: readonly number[] | null
  /** Default: one id for each piece and call from 10 on, and 99 at the end; null = none are sent. */
  readonly ids?: readonly number[] | null
  /** Default: -0.5 for each id; null = none are sent. */
  readonly logprobs?: readonly number[] | null
  /** Default: what the ids say; null = none is sent. */
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null
  /** Waited for before the head of the answer. */
  readonly before?: Promise<void>
  /** Waited for before the chunk of that number (text pieces first, from 0). */
  readonly pause?: { readonly atChunk: number; readonly until: Promise<void> }
  /** The connection is cut after so many chunks. */
  readonly cutAfter?: number
  /** An error event after so many chunks, in place of the rest. */
  readonly errorAfter?: number
  /** The bytes of a streamed answer, each piece written in a turn of its own, in place of all the above. */
  readonly raw?: readonly Uint8Array[]
  /** Fields added to a whole answer's choice or a stream's first chunk. */
  readonly extra?: JsonObject
}

export interface EngineRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: JsonObject
  /** Settles when the connection of this request closes: true = before the answer was complete. */
  readonly closedEarly: Promise<boolean>
}

export interface ScriptedEngine {
  readonly url: string
  /** Generations, in order of arrival. */
  readonly generations: readonly EngineRequest[]
  readonly tokenizations: readonly EngineRequest[]
  /** Waits for the generation of that number. */
  generation(index: number): Promise<EngineRequest>
  close(): Promise<void>
}

export type Script = readonly ScriptedAnswer[] | ((body: JsonObject, index: number) => ScriptedAnswer)

/** `script`: answers in order, the last one repeated; or a function of the request. */
export async function scriptedEngine(
  t: { teardown(run: () => unknown): unknown },
  script: Script = [{ pieces: ['ok'] }],
): Promise<ScriptedEngine> {
  const generations: EngineRequest[] = []
  const tokenizations: EngineRequest[] = []
  const arrivals: (() => void)[] = []
  const answerOf = (body: JsonObject, index: number): ScriptedAnswer =>
    typeof script === 'function' ? script(body, index) : (script[Math.min(index, script.length - 1)] ?? {})

  const server = createServer((request, response) => {
    void serve(request, response)
  })
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    const body = (text === '' ? {} : JSON.parse(text)) as JsonObject
    const closedEarly = new Promise<boolean>(resolve =>
      response.once('close', () => resolve(!response.writableFinished)),
    )
    const entry = { path: request.url ?? '', headers: request.headers, body, closedEarly }
    if (request.url === '/tokenize') {
      tokenizations.push(entry)
      sendJson(response, 200, tokenized(body))
    } else if (request.url === '/v1/chat/completions') {
      generations.push(entry)
      for (const arrived of arrivals.splice(0)) arrived()
      await reply(response, body, answerOf(body, generations.length - 1))
    } else sendJson(response, 404, { error: { message: `no route ${request.url}` } })
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  t.teardown(close)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    generations,
    tokenizations,
    async generation(index) {
      for (;;) {
        const found = generations[index]
        if (found !== undefined) return found
        await new Promise<void>(resolve => arrivals.push(resolve))
      }
    },
    close,
  }
}

/** Template of the script: `[role, length of the content, 99, 5]` per message, `[7, 8]` to make the model speak. */
function tokenized(body: JsonObject): JsonObject {
  const messages = (body['messages'] ?? []) as readonly JsonObject[]
  const roles = ['system', 'user', 'assistant', 'tool']
  const tokens = messages.flatMap(message => [
    100 + roles.indexOf(String(message['role'])),
    1000 + String(message['content']).charCodeAt(0) + String(message['content']).length,
    99,
    5,
  ])
  if (body['add_generation_prompt'] !== false) tokens.push(7, 8)
  return { count: tokens.length, max_model_len: 4096, tokens }
}

async function reply(response: ServerResponse, body: JsonObject, answer: ScriptedAnswer): Promise<void> {
  await answer.before
  if (response.destroyed) return
  if (answer.status !== undefined && answer.status !== 200) {
    sendJson(response, answer.status, answer.error ?? { error: { message: `HTTP ${answer.status}` } }, answer.headers)
    return
  }
  if (answer.raw !== undefined && body['stream'] === true) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const piece of answer.raw) {
      response.write(piece)
      await new Promise(resolve => setImmediate(resolve))
    }
    response.end()
    return
  }
  const pieces = answer.pieces ?? []
  const calls = (answer.toolCalls ?? []).map((call, index) => ({
    index,
    id: call.id ?? `call-${index}`,
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }))
  const ids = answer.ids === undefined ? [...[...pieces, ...calls].map((_, index) => 10 + index), 99] : answer.ids
  const logprobs = answer.logprobs === undefined ? ids?.map(() => -0.5) : answer.logprobs
  const promptIds = answer.promptIds === undefined ? [1, 2, 3] : answer.promptIds
  const finish = answer.finish === undefined ? (calls.length > 0 ? 'tool_calls' : 'stop') : answer.finish
  const usage =
    answer.usage === undefined
      ? { prompt_tokens: promptIds?.length ?? 0, completion_tokens: ids?.length ?? 0 }
      : answer.usage
  const share = (from: number, to?: number): JsonObject => ({
    ...(ids && { token_ids: ids.slice(from, to) }),
    ...(logprobs && {
      logprobs: { content: logprobs.slice(from, to).map(logprob => ({ token: 't', logprob, top_logprobs: [] })) },
    }),
  })
  const head = { id: 'chatcmpl-engine', created: 1, model: body['model'] }
  const stop = answer.stopReason === undefined ? {} : { stop_reason: answer.stopReason }

  if (body['stream'] !== true) {
    const message = {
      role: 'assistant',
      content: pieces.length === 0 ? null : pieces.join(''),
      ...(answer.reasoning !== undefined && { reasoning: answer.reasoning }),
      ...(calls.length > 0 && { tool_calls: calls.map(({ index: _, ...call }) => call) }),
    }
    sendJson(response, 200, {
      ...head,
      object: 'chat.completion',
      ...(promptIds && { prompt_token_ids: promptIds }),
      choices: [{ index: 0, message, finish_reason: finish, ...stop, ...share(0), ...answer.extra }],
      ...(usage && { usage }),
    })
    return
  }

  const deltas: JsonObject[] = [
    ...(answer.reasoning === undefined ? [] : [{ reasoning: answer.reasoning }]),
    ...pieces.map(content => ({ content })),
    ...calls.map(call => ({ tool_calls: [call] })),
  ]
  const event = (data: JsonObject) =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...data })}\n\n`
  response.writeHead(200, { 'content-type': 'text/event-stream', ...answer.headers })
  response.write(
    event({
      ...(promptIds && { prompt_token_ids: promptIds }),
      choices: [{ index: 0, delta: { role: 'assistant', content: '' }, ...answer.extra }],
    }),
  )
  for (const [index, delta] of deltas.entries()) {
    if (answer.pause?.atChunk === index) await answer.pause.until
    if (response.destroyed) return
    if (answer.cutAfter === index) return cut(response)
    if (answer.errorAfter === index) {
      response.end(event({ error: { message: 'engine failed', type: 'InternalServerError', code: 500 } }))
      return
    }
    response.write(event({ choices: [{ index: 0, delta, ...share(index, index + 1) }] }))
  }
  if (answer.pause?.atChunk === deltas.length) await answer.pause.until
  if (response.destroyed) return
  if (answer.cutAfter === deltas.length) return cut(response)
  if (finish !== null) {
    const delta = {}
    response.write(event({ choices: [{ index: 0, delta, finish_reason: finish, ...stop, ...share(deltas.length) }] }))
  }
  if (usage !== null) response.write(event({ choices: [], usage }))
  response.end('data: [DONE]\n\n')
}

/** After what was written has left: a destroyed socket drops what is still in its queue. */
function cut(response: ServerResponse): void {
  response.write(': cut\n\n', () => response.destroy())
}

function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(text)
}
