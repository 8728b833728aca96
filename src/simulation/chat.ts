// POST /v1/chat/completions: prompt, policy, generation, and the answer whole or as a stream.

import type { Clock } from '../domain/clock.js'
import type { JsonObject } from '../domain/json.js'
import type { Tokenizer } from '../tokenizer/tokenizer.js'
import { answerParser, type ParserOptions, parseAnswer } from './answer-parser.js'
import {
  type AnswerWire,
  chunkBody,
  deltaBody,
  finishReason,
  newId,
  type ReasoningKey,
  type Report,
  usageBody,
} from './chat-wire.js'
import type { Draw, Sampler } from './distribution.js'
import type { DriftForm } from './drift.js'
import { EngineError } from './errors.js'
import { ABORTED_TOKENS, type Faults, SLOW_FIRST_BYTE_MS } from './faults.js'
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
  readonly wire: AnswerWire
}

/** Tokens a chunk when nobody waits for them; one at a time otherwise. */
const CHUNK_TOKENS = 8

/** Planted: the engine fails with its head already sent. */
export class MidstreamFailure extends EngineError {
  constructor() {
    super(500, 'EngineCore encountered an issue. See stack trace (above) for the root cause.')
  }
}
/** Planted: the connection is to be cut. */
export class Disconnect extends Error {}

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
  readonly parser: ParserOptions
  readonly model: string
  readonly faults: Faults
}

/** A generation ready to run. Throws EngineError or RolloutError DIALECT_INVALID_REQUEST before anything is sent. */
export function prepare(engine: Engine, given: ChatRequest, faults: Faults): Prepared {
  const { wire } = engine
  const request = {
    ...given,
    ...(engine.drift.has('hidden_reasoning') && { includeReasoning: false }),
    ...(faults('no_ids') && { returnTokenIds: false, returnPromptIds: false, returnMetaInfo: false }),
  }
  wire.check(request)
  if (
    wire.checksModel &&
    request.model !== null &&
    request.model !== engine.modelName &&
    !engine.adapters.has(request.model)
  ) {
    throw new EngineError(404, `The model \`${request.model}\` does not exist.`, 'model')
  }
  const prompt = promptIds(engine, request)
  const room = engine.contextWindow - prompt.length
  if (room <= 0 || (!wire.clampsMaxTokens && (request.maxTokens ?? 0) > room)) {
    throw wire.contextLengthError(engine.contextWindow, prompt.length, request.maxTokens ?? 0)
  }
  const tools = request.toolChoice.type === 'none' ? [] : request.tools.map(offered)
  const thinking = templateArguments(engine, request.kwargs)['enable_thinking'] !== false
  const program = engine.policy.program({
    messages: request.messages,
    tools,
    mustCall: mustCall(request),
    schema: request.schema,
    thinking,
  })
  const steps = generate({
    tokenizer: engine.tokenizer,
    program,
    sampler: engine.sampler,
    settings: request.settings,
    random: request.seed === null ? engine.unseeded() : seededRandom(request.seed),
    maxTokens: Math.min(request.maxTokens ?? room, room),
    stop: request.stop,
    stopTokenIds: request.stopTokenIds,
    includeStop: request.includeStop,
  })
  const cachedTokens = engine.cache.visit(prompt)
  const parser = {
    tools: tools.length > 0,
    raw: engine.drift.has('raw_whitespace'),
    reasoning: wire.parserReasoning(thinking),
  }
  return { request, prompt, cachedTokens, steps, parser, model: request.model ?? engine.modelName, faults }
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

async function prefill(engine: Engine, { prompt, cachedTokens, faults }: Prepared, signal: AbortSignal): Promise<void> {
  if (faults('slow_first_byte')) await engine.clock.sleep(SLOW_FIRST_BYTE_MS, signal)
  await spend(engine, ((prompt.length - cachedTokens) / 1000) * engine.prefillMsPer1k, signal)
}

/** The steps of a generation, cut short where it is to be aborted. */
function* stepsOf({ steps, faults }: Prepared): Generator<Step> {
  let length = 0
  for (const step of steps) {
    length += 1
    const isCut = faults('abort_finish') && length === ABORTED_TOKENS && step.ending === null
    yield isCut ? { ...step, ending: { reason: 'abort', matched: null } } : step
    if (isCut) return
  }
}

function reasoningTokens({ tokenizer }: Engine, { parser }: Prepared, draws: readonly Draw[]): number {
  const open = tokenizer.idOf('<think>')
  const end = draws.findIndex(({ id }) => id === tokenizer.idOf('</think>'))
  const starts = parser.reasoning === 'always' || (parser.reasoning !== 'never' && draws[0]?.id === open)
  if (!starts) return 0
  return (end < 0 ? draws : draws.slice(0, end)).filter(({ id }) => id !== open).length
}

/** What is told of `draws`, which are the answer's from position `start` on; `ending` when they are its last. */
function reportOf(draws: readonly Draw[], start: number, ending: Ending | null, faults: Faults): Report {
  const told = faults('clamped_logprobs')
    ? draws.map((draw, index) => ((start + index) % 3 === 2 ? { ...draw, logprob: Number.NEGATIVE_INFINITY } : draw))
    : draws
  const isStopped = ending?.reason === 'stop' && ending.matched === null
  return {
    tokens: faults('no_stop_id') && isStopped ? told.slice(0, -1) : told,
    content: faults('short_logprobs') && ending !== null ? told.slice(0, -1) : told,
  }
}

/** The whole answer's body. Rejects when `signal` aborts. */
export async function answerWhole(engine: Engine, prepared: Prepared, signal: AbortSignal): Promise<JsonObject> {
  const { request, prompt, faults } = prepared
  await prefill(engine, prepared, signal)
  if (faults('midstream_error')) throw new MidstreamFailure()
  if (faults('disconnect')) throw new Disconnect()
  const draws: Draw[] = []
  let text = ''
  let ending: Ending = { reason: 'length', matched: null }
  for (const step of stepsOf(prepared)) {
    draws.push(step.draw)
    text += step.text
    if (step.ending) ending = step.ending
  }
  await spend(engine, draws.length * engine.decodeMsPerToken, signal)
  const parsed = parseAnswer(text, prepared.parser)
  const body = engine.wire.whole(
    {
      head: newHead(engine, prepared),
      parsed,
      reasoningKey: reasoningKey(engine, faults),
      report: reportOf(draws, 0, ending, faults),
      ending,
      finish: finishReason(ending, parsed.calls.length > 0),
      promptIds: prompt,
      usage: {
        promptTokens: prompt.length,
        cachedTokens: prepared.cachedTokens,
        reasoningTokens: reasoningTokens(engine, prepared, draws),
      },
      sampled: draws.length,
      request,
    },
    engine.tokenizer,
  )
  return faults('no_usage') ? { ...body, usage: null } : body
}

function reasoningKey({ wire }: Engine, faults: Faults): ReasoningKey {
  if (!faults('other_reasoning_key')) return wire.reasoningKey
  return wire.reasoningKey === 'reasoning' ? 'reasoning_content' : 'reasoning'
}

/** Sends the answer chunk by chunk, `[DONE]` last. Rejects when `signal` aborts or the client has gone. */
export async function answerStream(
  engine: Engine,
  prepared: Prepared,
  send: SendEvent,
  signal: AbortSignal,
): Promise<void> {
  const { request, prompt, faults } = prepared
  const { wire, tokenizer } = engine
  const thoughts = reasoningKey(engine, faults)
  const head = newHead(engine, prepared)
  const sendBody = (body: JsonObject): Promise<void> => send(JSON.stringify(body))
  const parser = answerParser(prepared.parser)
  const interval = request.streamInterval ?? (engine.decodeMsPerToken > 0 ? 1 : CHUNK_TOKENS)
  await prefill(engine, prepared, signal)
  await sendBody(chunkBody(head, { role: 'assistant', content: '' }, {}, wire.promptFields(request, prompt)))
  const all: Draw[] = []
  let called = false
  let pending: Draw[] = []
  let text = ''
  for (const { draw, text: piece, ending } of stepsOf(prepared)) {
    await spend(engine, engine.decodeMsPerToken, signal)
    all.push(draw)
    pending.push(draw)
    text += piece
    if (ending === null && pending.length < interval) continue
    const deltas = [...parser.push(text), ...(ending ? parser.end() : [])]
    called ||= deltas.some(delta => delta.type === 'call-start')
    const bodies = deltas.map(delta => deltaBody(delta, request, thoughts)).filter(body => body !== null)
    // Ids and logprobs stand in the group's first chunk, which may be without text: a parser is holding it back.
    const [first = {}, ...others] = bodies
    const ids = wire.groupFields(reportOf(pending, all.length - pending.length, ending, faults), request, tokenizer)
    const last = ending && wire.lastFields(ending, finishReason(ending, called), tokenizer)
    if (bodies.length > 0 || request.returnTokenIds || request.logprobs || last) {
      await sendBody(chunkBody(head, first, { ...ids, ...(others.length === 0 && last) }))
    }
    for (const [index, body] of others.entries()) {
      await sendBody(chunkBody(head, body, index === others.length - 1 && last ? last : {}))
    }
    pending = []
    text = ''
    if (faults('midstream_error')) throw new MidstreamFailure()
    if (faults('disconnect')) throw new Disconnect()
  }
  if (request.includeUsage && !faults('no_usage')) {
    const counts = {
      promptTokens: prompt.length,
      cachedTokens: prepared.cachedTokens,
      reasoningTokens: reasoningTokens(engine, prepared, all),
    }
    const usage = usageBody(counts, all.length)
    await sendBody({ ...chunkBody(head, {}, {}), choices: [], usage, system_fingerprint: null })
  }
  await send('[DONE]')
}

const newHead = (engine: Engine, prepared: Prepared) => ({
  id: newId('chatcmpl-'),
  created: Math.floor(engine.clock.now() / 1000),
  model: prepared.model,
})
