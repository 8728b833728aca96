// What surrounds the generations of a server: its models and window, its tokenizer routes, what it does with a prompt that is too
// long and with fields it does not know, its prefix cache, and whether its replicas are alike.

import type { CanonicalMessage } from '../../domain/conversation.js'
import type { UpstreamAnswer } from '../base.js'
import { countOf, listOf, objectOf, textOf } from '../shared/read.js'
import { type Asker, inBrief, requestOf, user } from './asking.js'
import { sameIds } from './capture-checks.js'
import { fault, note, ok, type ProbeFinding, warning } from './report.js'

export interface ServedModel {
  readonly id: string
  /** Tokens; null = not told. */
  readonly window: number | null
}

/** Tried where the server tells no window. */
const ASSUMED_WINDOW = 140_000
const CUT_CURE =
  'vLLM: no `--truncate-prompt-tokens`; SGLang: no `--allow-auto-truncate`; llama.cpp: `--no-context-shift`'

/** Empty where the server has no list. */
export async function servedModels(ask: Pick<Asker, 'json'>): Promise<readonly ServedModel[]> {
  const body = await ask.json('GET', '/v1/models')
  return listOf(body?.['data']).flatMap(entry => {
    const model = objectOf(entry)
    const id = textOf(model?.['id'])
    if (id === null) return []
    // llama.cpp: what it was started with comes before what the model was made for.
    const meta = objectOf(model?.['meta'])
    const window = countOf(model?.['max_model_len']) ?? countOf(meta?.['n_ctx']) ?? countOf(meta?.['n_ctx_train'])
    return [{ id, window }]
  })
}

export interface TokenizerProbed {
  readonly finding: ProbeFinding
  readonly hasTokenizer: boolean
  readonly window: number | null
  readonly endTokenId: number | null
}

/** `answer`: of `messages`, whose prompt ids the tokenizer route must give as well. */
export async function probeTokenizer(
  ask: Asker,
  messages: readonly CanonicalMessage[],
  answer: UpstreamAnswer,
): Promise<TokenizerProbed> {
  const { profile, model } = ask
  const tokens = async (list: readonly CanonicalMessage[], addGenerationPrompt: boolean) => {
    const question = profile.countRequest(requestOf({ messages: list }), model, addGenerationPrompt)
    return question && (await ask.json('POST', question.path, question.body))
  }
  const body = await tokens(messages, true)
  const ids = body && profile.readTokens(body)
  // A route of that name that knows no messages counts none (llama.cpp's takes text).
  if (body === null || ids === null || ids.length === 0) {
    const seen = 'no route counts prompts by the template: windows are told by the server alone'
    return { finding: note('tokenizer', seen), hasTokenizer: false, window: null, endTokenId: null }
  }
  const window = profile.readWindow(body)
  const [a, b] = [
    await tokens([user('hi'), { role: 'assistant', content: 'a' }], false),
    await tokens([user('hi'), { role: 'assistant', content: '7' }], false),
  ].map(one => one && profile.readTokens(one))
  const endTokenId = firstOfCommonEnd(a ?? null, b ?? null)
  return { finding: promptFinding(ids, answer), hasTokenizer: true, window, endTokenId }
}

function promptFinding(counted: Int32Array, { promptIds }: UpstreamAnswer): ProbeFinding {
  if (promptIds === null) return note('tokenizer', '/tokenize counts prompts; no ids of a generation to compare with')
  if (sameIds(counted, promptIds)) return ok('tokenizer', '/tokenize gives the same prompt ids as a generation')
  const seen = `/tokenize gives ${counted.length} prompt ids, a generation of the same messages ${promptIds.length} others`
  return fault('tokenizer', 'prompt_ids_differ', seen, CUT_CURE)
}

/** Two answers that differ in their text end alike: with the end token and the template's glue behind it. */
function firstOfCommonEnd(a: Int32Array | null, b: Int32Array | null): number | null {
  if (a === null || b === null) return null
  let length = 0
  while (length < Math.min(a.length, b.length) && a[a.length - 1 - length] === b[b.length - 1 - length]) length += 1
  return length === 0 || length === a.length ? null : (a[a.length - length] ?? null)
}

/** One call over the window. `window`: as told; null = not told. */
export async function overLongFinding(ask: Asker, window: number | null): Promise<ProbeFinding> {
  const words = Math.ceil((window ?? ASSUMED_WINDOW) * 1.02) + 64
  // Each is a token at least, in every tokenizer.
  const content = `${'the 7 '.repeat(Math.ceil(words / 2))}\nSay yes.`
  const asked = await ask.generate({ messages: [user(content)], sampling: { maxTokens: 1 } })
  if (asked.ok) {
    const read = asked.answer.promptIds?.length ?? asked.answer.usage?.promptTokens ?? null
    if (read !== null && read < words) {
      const seen = `of a prompt of more than ${words} tokens it read ${read} and said nothing: the context was cut`
      return fault('context_limit', 'context_cut', seen, CUT_CURE)
    }
    const seen = `a prompt of ${read ?? words} tokens is taken${window === null ? '' : `, though the window is said to be ${window}`}`
    return note('context_limit', seen, 'name upstreams[].contextWindow')
  }
  const { status, message, contextLength } = asked.error
  const said = `${status}: ${inBrief(message)}`
  if (contextLength !== null) return ok('context_limit', `a prompt over the window is refused (${said})`)
  const seen = `a prompt over the window fails in words that are not known (${said}): harnesses will not compact`
  return warning(
    'context_limit',
    'error_shape_unknown',
    seen,
    'name upstreams[].contextWindow, so that the gateway refuses first',
  )
}

export async function unknownFieldFinding(ask: Asker): Promise<ProbeFinding> {
  const asked = await ask.generate({
    messages: [user('Say yes.')],
    sampling: { maxTokens: 1 },
    extra: { sextant_unknown_field: true },
  })
  if (asked.ok) return note('unknown_fields', 'unknown fields are ignored')
  return note('unknown_fields', `unknown fields are refused (${asked.error.status})`)
}

/** `again`: the same prompt was sent before. */
export function cacheFinding(again: UpstreamAnswer): ProbeFinding {
  const cached = again.usage?.cachedTokens ?? 0
  if (cached > 0)
    return ok('prefix_cache', `${cached} of ${again.usage?.promptTokens} tokens of a repeated prompt were cached`)
  const cure = 'vLLM: `--enable-prefix-caching --enable-prompt-tokens-details`; SGLang: `--enable-cache-report`'
  return note('prefix_cache', 'no cached tokens are told of a repeated prompt', cure)
}

/** Every further replica answers the same question with the same prompt ids. */
export async function replicaFindings(
  ask: Asker,
  messages: readonly CanonicalMessage[],
  first: UpstreamAnswer,
): Promise<readonly ProbeFinding[]> {
  const findings: ProbeFinding[] = []
  for (const url of ask.urls.slice(1)) {
    const asked = await ask.generate({ messages, sampling: { maxTokens: 8 }, url })
    if (!asked.ok) {
      const seen = `${url} fails (${asked.error.status}): ${inBrief(asked.error.message)}`
      findings.push(fault('replicas', 'replica_fails', seen, 'start it, or take it out of upstreams[].urls'))
      continue
    }
    const { promptIds, sampledIds, logprobs } = asked.answer
    const isAlike =
      promptIds === null ? first.promptIds === null : first.promptIds !== null && sameIds(promptIds, first.promptIds)
    if (!isAlike || (sampledIds === null) !== (first.sampledIds === null) || sampledIds?.length !== logprobs?.length) {
      const seen = `${url} tells other prompt ids than the first replica, or none`
      findings.push(fault('replicas', 'replicas_differ', seen, 'the same model, template and flags on every replica'))
    }
  }
  if (findings.length > 0) return findings
  return ask.urls.length > 1 ? [ok('replicas', `${ask.urls.length} replicas tell the same prompt ids`)] : []
}
