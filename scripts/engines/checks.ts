// What is checked of a real engine behind the gateway: that the record holds exactly what the engine saw and sampled. Its own
// tokenizer route says what the prompt was, a second scoring of the same ids what the logprobs are.

import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { builders } from '../../src/builders/registry.js'
import type { CompletionRecord } from '../../src/domain/completion.js'
import type { JsonObject } from '../../src/domain/json.js'
import { gatewayPlan, type Pair, startPair } from '../../test/support/pair.js'
import { WINDOW } from './engine.js'

/** Decoding and prefill add up in another order; float32 weights keep them this close (nats). */
const LOGPROB_TOLERANCE = 0.005

export interface Check {
  readonly name: string
  readonly isGood: boolean
  readonly detail: string
}

export interface Teardown {
  teardown(run: () => unknown): unknown
}

export const MESSAGES = [{ role: 'user' as const, content: 'Say something about the weather in Zürich — 東京 too.' }]
export const TOOLS = [
  {
    type: 'function' as const,
    function: {
      name: 'look',
      description: 'Looks at a place.',
      parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
    },
  },
]

/** Calls of the SDKs through a gateway in front of `url`, then the records against the engine. */
export async function engineChecks(t: Teardown, url: string): Promise<readonly Check[]> {
  const plan = gatewayPlan([{ urls: [url], modelServed: 'tiny', contextWindow: null }])
  const pair = await startPair(t, plan)
  const checks: Check[] = []
  const check = (name: string, isGood: boolean, detail: string) => checks.push({ name, isGood, detail })

  const session = await pair.session('sdk', { samplingSeed: 11 })
  const openai = new OpenAI({ apiKey: session.key, baseURL: `${pair.url}/v1`, maxRetries: 0 })
  const whole = await openai.chat.completions.create({ model: 'm', messages: MESSAGES, tools: TOOLS, max_tokens: 60 })
  const streamed = await streamedText(
    await openai.chat.completions.create({
      model: 'm',
      messages: MESSAGES,
      tools: TOOLS,
      max_tokens: 60,
      stream: true,
    }),
  )
  const anthropic = new Anthropic({ apiKey: session.key, baseURL: pair.url, maxRetries: 0 })
  const claude = await anthropic.messages
    .stream({ model: 'm', max_tokens: 60, thinking: { type: 'disabled' }, messages: MESSAGES })
    .finalMessage()
  // A second turn on the first answer, as a client of Chat Completions sends it back.
  await openai.chat.completions.create({
    model: 'm',
    max_tokens: 60,
    tools: TOOLS,
    messages: [
      ...MESSAGES,
      { role: 'assistant', content: whole.choices[0]?.message.content ?? null },
      { role: 'user', content: 'Go on.' },
    ],
  })
  checks.push(await overWindow(openai))

  const ledger = await pair.ledger(session)
  const records = ledger.calls.map(({ record }) => record)
  const names = ['openai, whole', 'openai, streamed', 'anthropic, streamed', 'openai, second turn']
  check('calls recorded', records.length === names.length, `${records.length} of ${names.length}`)
  const texts = [textOf(whole), streamed, claude.content.map(block => ('text' in block ? block.text : '')).join('')]
  for (const [index, record] of records.entries()) {
    const name = names[index] ?? '?'
    check(`${name}: trainable`, record.notTrainable === null, record.notTrainable ?? `${record.sampledIds?.length} ids`)
    checks.push(await promptCheck(url, name, record))
    checks.push(await scoringCheck(url, name, record))
    const told = texts[index]
    if (told !== undefined) checks.push(await textCheck(url, name, record, told))
  }
  checks.push(await joinCheck(ledger, pair))
  checks.push(await forcedCheck(pair, url))
  return checks
}

const PLACES = { type: 'object', properties: { place: { enum: ['here', 'there'] } }, required: ['place'] }
/**
 * Told to call a tool, the engine draws under a grammar and reports logprobs of what the grammar leaves. That they are not the policy's is
 * why such a call is not trainable. Whether the call is finished depends on the draws: a random model may write white space for ever.
 */
async function forcedCheck(pair: Pair, url: string): Promise<Check> {
  const session = await pair.session('forced', { samplingSeed: 3 })
  const openai = new OpenAI({ apiKey: session.key, baseURL: `${pair.url}/v1`, maxRetries: 0 })
  const request = {
    model: 'm',
    messages: MESSAGES,
    tools: [{ type: 'function' as const, function: { name: 'look', parameters: PLACES } }],
    tool_choice: { type: 'function' as const, function: { name: 'look' } },
    max_tokens: 60,
    chat_template_kwargs: { enable_thinking: false }, // the engines' own field
  }
  await openai.chat.completions.create(request)
  const record = (await pair.ledger(session)).calls[0]?.record
  const scored = await scores(url, [...(record?.promptIds ?? [])], [...(record?.sampledIds ?? [])])
  const apart = farthest(record?.logprobs ?? new Float32Array(), scored)
  return {
    name: 'a forced tool call: set aside',
    isGood: record?.notTrainable === 'constrained_sampling' && apart > 1,
    detail: `${record?.notTrainable}; its logprobs are up to ${apart.toFixed(1)} nats from a second scoring`,
  }
}

/** A prompt over the engine's window must reach an SDK as OpenAI's own error. */
export async function overWindow(openai: OpenAI): Promise<Check> {
  const told = await openai.chat.completions
    .create({ model: 'm', messages: [{ role: 'user', content: 'word '.repeat(WINDOW + 10) }] })
    .then(
      () => 'it was answered',
      (failure: unknown) => (failure instanceof OpenAI.BadRequestError ? String(failure.code) : String(failure)),
    )
  return { name: 'a prompt over the window', isGood: told === 'context_length_exceeded', detail: told }
}

export const textOf = (completion: OpenAI.ChatCompletion): string => {
  const message = completion.choices[0]?.message as { content?: string | null; reasoning_content?: string } | undefined // ours
  return (message?.reasoning_content ?? '') + (message?.content ?? '')
}

/** The SDK's own accumulator keeps only the last piece of fields that it does not know. */
export async function streamedText(stream: AsyncIterable<OpenAI.ChatCompletionChunk>): Promise<string> {
  let text = ''
  for await (const chunk of stream) {
    const delta = chunk.choices[0]?.delta as { content?: string | null; reasoning_content?: string } | undefined // ours
    text += (delta?.reasoning_content ?? '') + (delta?.content ?? '')
  }
  return text
}

export async function ask(url: string, path: string, body: JsonObject): Promise<Record<string, unknown>> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return Object(await response.json())
}

async function promptCheck(url: string, name: string, record: CompletionRecord): Promise<Check> {
  const { messages, tools, chat_template_kwargs: kwargs } = record.request
  const counted = await ask(url, '/tokenize', {
    model: 'tiny',
    ...(messages !== undefined && { messages }),
    ...(tools !== undefined && { tools }),
    ...(kwargs !== undefined && { chat_template_kwargs: kwargs }),
  })
  const ids = record.promptIds ?? []
  const isGood = ids.length > 0 && JSON.stringify([...ids]) === JSON.stringify(counted['tokens'])
  return { name: `${name}: prompt ids = /tokenize`, isGood, detail: `${ids.length} ids` }
}

/**
 * Scores prompt and answer as a prompt of ids, and compares the answer's logprobs. As a control the same with the prompt's first
 * three ids changed: a comparison that finds no difference there finds none anywhere.
 */
async function scoringCheck(url: string, name: string, record: CompletionRecord): Promise<Check> {
  const prompt = [...(record.promptIds ?? [])]
  const sampled = [...(record.sampledIds ?? [])]
  const told = record.logprobs ?? new Float32Array()
  const worst = farthest(told, await scores(url, prompt, sampled))
  const control = farthest(told, await scores(url, [100, 200, 300, ...prompt.slice(3)], sampled))
  const mean = told.reduce((sum, logprob) => sum + logprob, 0) / told.length
  return {
    name: `${name}: logprobs = a second scoring`,
    isGood: sampled.length > 0 && worst < LOGPROB_TOLERANCE && control > LOGPROB_TOLERANCE,
    detail: `${worst.toExponential(1)} apart at most, ${control.toFixed(2)} after another prompt; mean ${mean.toFixed(2)}`,
  }
}

/** Logprobs of `sampled` after `prompt`; NaN where the engine tells none. */
async function scores(url: string, prompt: readonly number[], sampled: readonly number[]): Promise<readonly number[]> {
  const scored = await ask(url, '/v1/completions', {
    model: 'tiny',
    prompt: [...prompt, ...sampled],
    max_tokens: 1,
    temperature: 1,
    prompt_logprobs: 0,
  })
  const choice = (scored['choices'] as readonly { prompt_logprobs?: readonly Score[] }[] | undefined)?.[0]
  const places = choice?.prompt_logprobs?.slice(prompt.length) ?? []
  return sampled.map((id, index) => places[index]?.[String(id)]?.logprob ?? Number.NaN)
}

const farthest = (told: Float32Array, scored: readonly number[]): number =>
  Math.max(...scored.map((logprob, index) => Math.abs(logprob - (told[index] ?? Number.NaN))))

type Score = Readonly<Record<string, { readonly logprob: number }>> | null

async function textCheck(url: string, name: string, record: CompletionRecord, told: string): Promise<Check> {
  const ids = [...(record.sampledIds ?? [])].filter(id => id !== record.endTokenId)
  const { prompt } = await ask(url, '/detokenize', { model: 'tiny', tokens: ids })
  const isGood = typeof prompt === 'string' && prompt === told
  return {
    name: `${name}: text of the ids`,
    isGood,
    detail: isGood ? `${told.length} characters` : `${String(prompt).slice(0, 40)} / ${told.slice(0, 40)}`,
  }
}

async function joinCheck(ledger: Awaited<ReturnType<Pair['ledger']>>, pair: Pair): Promise<Check> {
  const context = { decode: async () => '', sessionId: 'sdk', taskId: 't', taskMetadata: {} }
  const { ledger: counts } = await builders.prefix_merging.build(ledger, {}, context)
  const { sampled, trained, setAside } = counts.tokens
  const aside = Object.values(setAside).reduce((sum, count) => sum + count, 0)
  const detail = `joins ${JSON.stringify(counts.joins)}; ${sampled} sampled = ${trained} trained + ${aside} set aside ${JSON.stringify(setAside)}; ${pair.deadLetters.length} dead letters`
  return {
    name: 'accounts of the session',
    isGood: sampled === trained + aside && pair.deadLetters.length === 0,
    detail,
  }
}
