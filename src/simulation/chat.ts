// POST /v1/chat/completions: prompt, policy, generation, and the answer whole or as a stream.

import type { Clock } from '../domain/clock.js'
import type { JsonObject } from '../domain/json.js'
import type { Tokenizer } from '../tokenizer/tokenizer.js'
import { answerParser, parseAnswer } from './answer-parser.js'
import { chunkBody, completionBody, deltaBody, finishReason, logprobsBody, newId, usageBody } from './chat-wire.js'
import type { Draw, Sampler } from './distribution.js'
import type { DriftForm } from './drift.js'
import { contextLengthError, VllmError } from './errors.js'
import { type Ending, generate, type Step } from './generate.js'
import type { Policy } from './policy/policy.js'
import type { OfferedTool } from './policy/tools.js'
import type { PrefixCache } from './prefix-cache.js'
import { type Random, seededRandom } from './random.js'
import type { ChatRequest } from './request.js'

export interface Engine {
  readonly tokenizer: Tokenizer
  readonly policy: Policy
  readonly sampler: Sampler
  readonly cache: PrefixCache
  readonly clock: Clock
  readonly modelName: string
  /** Further names that are served, as vLLM serves LoRA adapters. The policy is the same. */
  readonly adapters: ReadonlySet<string>
  readonly contextWindow: number
  /** Randomness of a request that names no seed: another one each time. */
  unseeded(): Random
  readonly prefillMsPer1k: number
  readonly decodeMsPerToken: number
  readonly drift: ReadonlySet<DriftForm>
}

/** Tokens a chunk when nobody waits for them; one at a time otherwise. */
const CHUNK_TOKENS = 8

/** Where a streamed answer goes. Resolves when the text is handed to the socket, rejects when the client has gone. */
export type SendEvent = (data: string) => Promise<void>

/** Prompt ids of a request, as the template renders it. Throws RolloutError DIALECT_INVALID_REQUEST. */
export function promptIds(
  engine: Engine,
  request: Pick<ChatRequest, 'messages' | 'tools' | 'kwargs'>,
  addGenerationPrompt = true,
): Int32Array {
  const text = engine.tokenizer.renderChat({
    messages: request.messages,
    tools: request.tools,
    addGenerationPrompt,
    kwargs: templateArguments(engine, request.kwargs),
  })
  return engine.tokenizer.encode(text)
}

const templateArguments = (engine: Engine, given: ChatRequest['kwargs']): ChatRequest['kwargs'] =>
  engine.drift.has('thinking_off') ? { enable_thinking: false, ...given } : given

interface Prepared {
  readonly request: ChatRequest
  readonly prompt: Int32Array
  readonly cachedTokens: number
  readonly steps: Generator<Step>
  readonly tools: boolean
  readonly model: string
}

/** A generation ready to run. Throws VllmError or RolloutError DIALECT_INVALID_REQUEST before anything is sent. */
export function prepare(engine: Engine, given: ChatRequest): Prepared {
  const request = engine.drift.has('hidden_reasoning') ? { ...given, includeReasoning: false } : given
  if (request.model !== null && request.model !== engine.modelName && !engine.adapters.has(request.model)) {
    throw new VllmError(404, `The model \`${request.model}\` does not exist.`, 'model')
  }
  const prompt = promptIds(engine, request)
  const room = engine.contextWindow - prompt.length
  if (room <= 0 || (request.maxTokens ?? 0) > room) {
    throw contextLengthError(engine.contextWindow, prompt.length, request.maxTokens ?? 0)
  }
  const tools = request.toolChoice.type === 'none' ? [] : request.tools.map(offered)
  const program = engine.policy.program({
    messages: request.messages,
    tools,
    mustCall: mustCall(request),
    schema: request.schema,
    thinking: templateArguments(engine, request.kwargs)['enable_thinking'] !== false,
  })
  const steps = generate({
    tokenizer: engine.tokenizer,
    program,
    sampler: engine.sampler,
    settings: request.settings,
    random: request.seed === null ? engine.unseeded() : seededRandom(request.seed),
    maxTokens: request.maxTokens ?? room,
    stop: request.stop,
    stopTokenIds: request.stopTokenIds,
    includeStop: request.includeStop,
  })
  const cachedTokens = engine.cache.visit(prompt)
  return { request, prompt, cachedTokens, steps, tools: tools.length > 0, model: request.model ?? engine.modelName }
}

function offered(tool: ChatRequest['tools'][number]): OfferedTool {
  const parameters = tool.function['parameters']
  return {
    name: tool.function.name,
    schema: typeof parameters === 'object' && parameters !== null ? { ...parameters } : {},
  }
}

function mustCall({ toolChoice }: ChatRequest): string | null | undefined {
  if (toolChoice.type === 'function') return toolChoice.name
  return toolChoice.type === 'required' ? null : undefined
}

/** Waits as long as a GPU would. */
async function spend(engine: Engine, milliseconds: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (milliseconds > 0) await engine.clock.sleep(milliseconds, signal)
}

const prefillMs = (engine: Engine, { prompt, cachedTokens }: Prepared): number =>
  ((prompt.length - cachedTokens) / 1000) * engine.prefillMsPer1k

/** The whole answer's body. Rejects when `signal` aborts. */
export async function answerWhole(engine: Engine, prepared: Prepared, signal: AbortSignal): Promise<JsonObject> {
  const { request, prompt } = prepared
  await spend(engine, prefillMs(engine, prepared), signal)
  const draws: Draw[] = []
  let text = ''
  let ending: Ending = { reason: 'length', matched: null }
  for (const step of prepared.steps) {
    draws.push(step.draw)
    text += step.text
    if (step.ending) ending = step.ending
  }
  await spend(engine, draws.length * engine.decodeMsPerToken, signal)
  return completionBody(
    newHead(engine, prepared),
    {
      parsed: parseAnswer(text, { tools: prepared.tools, raw: engine.drift.has('raw_whitespace') }),
      draws,
      ending,
      promptIds: prompt,
      usage: { promptTokens: prompt.length, cachedTokens: prepared.cachedTokens },
    },
    request,
    engine.tokenizer,
  )
}

/** Sends the answer chunk by chunk, `[DONE]` last. Rejects when `signal` aborts or the client has gone. */
export async function answerStream(
  engine: Engine,
  prepared: Prepared,
  send: SendEvent,
  signal: AbortSignal,
): Promise<void> {
  const { request, prompt } = prepared
  const head = newHead(engine, prepared)
  const sendBody = (body: JsonObject): Promise<void> => send(JSON.stringify(body))
  const parser = answerParser({ tools: prepared.tools, raw: engine.drift.has('raw_whitespace') })
  const interval = request.streamInterval ?? (engine.decodeMsPerToken > 0 ? 1 : CHUNK_TOKENS)
  await spend(engine, prefillMs(engine, prepared), signal)
  await sendBody(
    chunkBody(
      head,
      { role: 'assistant', content: '' },
      {},
      request.returnTokenIds ? { prompt_token_ids: [...prompt] } : {},
    ),
  )
  let sampled = 0
  let called = false
  let pending: Draw[] = []
  let text = ''
  for (const { draw, text: piece, ending } of prepared.steps) {
    await spend(engine, engine.decodeMsPerToken, signal)
    sampled += 1
    pending.push(draw)
    text += piece
    if (ending === null && pending.length < interval) continue
    const deltas = [...parser.push(text), ...(ending ? parser.end() : [])]
    called ||= deltas.some(delta => delta.type === 'call-start')
    const bodies = deltas.map(delta => deltaBody(delta, request)).filter(body => body !== null)
    // Ids and logprobs stand in the group's first chunk, which may be without text: a parser is holding it back.
    const [first = {}, ...others] = bodies
    const ids = {
      logprobs: logprobsBody(pending, request, engine.tokenizer),
      ...(request.returnTokenIds && { token_ids: pending.map(({ id }) => id) }),
    }
    const last = ending && { finish_reason: finishReason(ending, called), stop_reason: ending.matched }
    if (bodies.length > 0 || request.returnTokenIds || request.logprobs || last) {
      await sendBody(chunkBody(head, first, { ...ids, ...(others.length === 0 && last) }))
    }
    for (const [index, body] of others.entries()) {
      await sendBody(chunkBody(head, body, index === others.length - 1 && last ? last : {}))
    }
    pending = []
    text = ''
  }
  if (request.includeUsage) {
    const usage = usageBody({ promptTokens: prompt.length, cachedTokens: prepared.cachedTokens }, sampled)
    await sendBody({ ...chunkBody(head, {}, {}), choices: [], usage })
  }
  await send('[DONE]')
}

const newHead = (engine: Engine, prepared: Prepared) => ({
  id: newId('chatcmpl-'),
  created: Math.floor(engine.clock.now() / 1000),
  model: prepared.model,
})
