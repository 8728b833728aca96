// A chat request in vLLM's or SGLang's shape, read and checked. Unknown fields are let through, as both do; fields that would change the
// prompt in silence are refused. Problems are EngineError: the server's own error body.

import { z } from 'zod'
import type { SamplingSettings } from './distribution.js'
import { EngineError } from './errors.js'

const object = z.record(z.string(), z.unknown())
const nullable = <T extends z.ZodType>(type: T) => type.nullish()

/** vLLM's `--max-logprobs`, above its default of 20: a test wants to see every candidate. */
const MOST_LOGPROBS = 100

const NOT_HERE = 'this server does not apply it'

const schema = z.looseObject({
  model: z.string().nullish(),
  messages: z.array(object).min(1),
  tools: nullable(z.array(z.looseObject({ function: z.looseObject({ name: z.string().min(1) }) }))),
  tool_choice: nullable(
    z.union([z.enum(['auto', 'none', 'required']), z.looseObject({ function: z.looseObject({ name: z.string() }) })]),
  ),
  stream: nullable(z.boolean()),
  stream_options: nullable(z.looseObject({ include_usage: nullable(z.boolean()) })),
  stream_interval: nullable(z.int().min(1)),
  n: nullable(z.literal(1, 'this server gives one choice')),
  max_tokens: nullable(z.int().min(1)),
  max_completion_tokens: nullable(z.int().min(1)),
  temperature: nullable(z.number().min(0)),
  top_p: nullable(z.number().gt(0).max(1)),
  top_k: nullable(z.int().min(-1)),
  min_p: nullable(z.number().min(0).max(1)),
  presence_penalty: nullable(z.number().min(-2).max(2)),
  frequency_penalty: nullable(z.number().min(-2).max(2)),
  seed: nullable(z.int()),
  stop: nullable(z.union([z.string(), z.array(z.string())])),
  stop_token_ids: nullable(z.array(z.int())),
  include_stop_str_in_output: nullable(z.boolean()),
  logprobs: nullable(z.boolean()),
  top_logprobs: nullable(z.int().min(0).max(MOST_LOGPROBS)),
  return_token_ids: nullable(z.boolean()),
  return_tokens_as_token_ids: nullable(z.boolean()),
  return_prompt_token_ids: nullable(z.boolean()),
  return_meta_info: nullable(z.boolean()),
  include_reasoning: nullable(z.boolean()),
  chat_template_kwargs: nullable(object),
  response_format: nullable(z.looseObject({ type: z.string() })),
  truncate_prompt_tokens: z.null('this server never cuts a prompt').optional(),
  // Known to vLLM and not to this server: ignored, they would make the reported distribution a lie.
  repetition_penalty: nullable(z.literal(1, NOT_HERE)),
  min_tokens: nullable(z.literal(0, NOT_HERE)),
  ignore_eos: nullable(z.literal(false, NOT_HERE)),
  use_beam_search: nullable(z.literal(false, NOT_HERE)),
  logit_bias: nullable(z.strictObject({}, NOT_HERE)),
  allowed_token_ids: z.null(NOT_HERE).optional(),
  bad_words: nullable(z.array(z.string()).length(0, NOT_HERE)),
  structured_outputs: z.null(NOT_HERE).optional(),
})

type Parsed = z.infer<typeof schema>

export interface ChatRequest {
  readonly model: string | null
  readonly messages: Parsed['messages']
  readonly tools: NonNullable<Parsed['tools']>
  /** `auto`, `none`, `required`, or the name of the function to call. */
  readonly toolChoice:
    | { readonly type: 'auto' | 'none' | 'required' }
    | { readonly type: 'function'; readonly name: string }
  readonly stream: boolean
  readonly includeUsage: boolean
  /** Tokens a chunk; null = the server's own. */
  readonly streamInterval: number | null
  readonly maxTokens: number | null
  readonly settings: SamplingSettings
  readonly seed: number | null
  readonly stop: readonly string[]
  readonly stopTokenIds: ReadonlySet<number>
  readonly includeStop: boolean
  readonly logprobs: boolean
  readonly topLogprobs: number
  readonly returnTokenIds: boolean
  readonly tokensAsIds: boolean
  /** SGLang's own two: ids of the prompt, and ids with logprobs of the answer. */
  readonly returnPromptIds: boolean
  readonly returnMetaInfo: boolean
  readonly includeReasoning: boolean
  readonly kwargs: Readonly<Record<string, unknown>>
  /** JSON schema asked for; null = any JSON object; undefined = text. */
  readonly schema: unknown
}

/** Throws EngineError 400 naming the first field that is wrong. */
export function parseChatRequest(body: unknown): ChatRequest {
  const parsed = schema.safeParse(body)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    const path = (issue?.path ?? []).map(step => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('')
    throw new EngineError(400, `${path.slice(1) || 'body'}: ${issue?.message ?? 'invalid'}`, path.slice(1) || null)
  }
  const given = parsed.data
  if (given.top_logprobs && !given.logprobs) {
    throw new EngineError(400, 'when using `top_logprobs`, `logprobs` must be set to true', 'top_logprobs')
  }
  const tools = given.tools ?? []
  const choice = given.tool_choice ?? (tools.length > 0 ? 'auto' : 'none')
  const toolChoice =
    typeof choice === 'string' ? { type: choice } : { type: 'function' as const, name: choice.function.name }
  if (toolChoice.type === 'function' && !tools.some(tool => tool.function.name === toolChoice.name)) {
    throw new EngineError(
      400,
      'the tool specified in `tool_choice` does not match any of the specified `tools`',
      'tool_choice',
    )
  }
  if (toolChoice.type !== 'none' && tools.length === 0) {
    throw new EngineError(400, 'when using `tool_choice`, `tools` must be set', 'tool_choice')
  }
  return {
    model: given.model ?? null,
    messages: given.messages,
    tools,
    toolChoice,
    stream: given.stream ?? false,
    includeUsage: given.stream_options?.include_usage ?? false,
    streamInterval: given.stream_interval ?? null,
    maxTokens: given.max_completion_tokens ?? given.max_tokens ?? null,
    settings: {
      temperature: given.temperature ?? 1,
      topP: given.top_p ?? 1,
      topK: given.top_k ?? 0,
      minP: given.min_p ?? 0,
      presencePenalty: given.presence_penalty ?? 0,
      frequencyPenalty: given.frequency_penalty ?? 0,
    },
    seed: given.seed ?? null,
    stop: typeof given.stop === 'string' ? [given.stop] : (given.stop ?? []).filter(text => text !== ''),
    stopTokenIds: new Set(given.stop_token_ids ?? []),
    includeStop: given.include_stop_str_in_output ?? false,
    logprobs: given.logprobs ?? false,
    topLogprobs: given.top_logprobs ?? 0,
    returnTokenIds: given.return_token_ids ?? false,
    tokensAsIds: given.return_tokens_as_token_ids ?? false,
    returnPromptIds: given.return_prompt_token_ids ?? false,
    returnMetaInfo: given.return_meta_info ?? false,
    includeReasoning: given.include_reasoning ?? true,
    kwargs: given.chat_template_kwargs ?? {},
    schema: wantedSchema(given.response_format),
  }
}

/** Fields of OpenAI's Chat Completions; servers that forbid others refuse what Sextant adds for capture. */
const OPENAI_FIELDS = new Set(
  (
    'model messages tools tool_choice parallel_tool_calls stream stream_options n max_tokens max_completion_tokens temperature ' +
    'top_p presence_penalty frequency_penalty seed stop logprobs top_logprobs logit_bias response_format reasoning_effort user ' +
    'metadata store service_tier'
  ).split(' '),
)

/** Throws EngineError 400 naming the first field that OpenAI's own API does not have. */
export function refuseForeignFields(body: unknown): void {
  if (typeof body !== 'object' || body === null) return
  const foreign = Object.keys(body).find(key => !OPENAI_FIELDS.has(key))
  if (foreign !== undefined) throw new EngineError(400, `${foreign}: Extra inputs are not permitted`, foreign)
}

function wantedSchema(format: Parsed['response_format']): unknown {
  if (!format || format.type === 'text') return undefined
  if (format.type === 'json_object') return null
  const json = format['json_schema']
  return typeof json === 'object' && json !== null && 'schema' in json ? json.schema : null
}
