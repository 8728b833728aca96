// What is checked of a real engine that tells no ids: that clients are served what it says, and that nothing is recorded beyond what it
// told. Its own template and tokenizer routes say how long the prompt was, the same seed asked directly what the answer is.

import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { CompletionRecord } from '../../src/domain/completion.js'
import { gatewayPlan, startPair } from '../../test/support/pair.js'
import { ask, type Check, MESSAGES, overWindow, streamedText, type Teardown, TOOLS, textOf } from './checks.js'

const REASON = 'no_token_ids'

/** Calls of the SDKs through a gateway in front of `url`, a llama.cpp server, then the records against the engine. */
export async function plainChecks(t: Teardown, url: string): Promise<readonly Check[]> {
  const plan = gatewayPlan([{ urls: [url], profile: 'openai_compatible', modelServed: 'tiny', contextWindow: null }])
  const pair = await startPair(t, plan)
  const session = await pair.session('sdk', { samplingSeed: 11 })
  const openai = new OpenAI({ apiKey: session.key, baseURL: `${pair.url}/v1`, maxRetries: 0 })
  const asked = { model: 'm', messages: MESSAGES, tools: TOOLS, max_tokens: 60 }
  const whole = textOf(await openai.chat.completions.create(asked))
  const streamed = await streamedText(await openai.chat.completions.create({ ...asked, stream: true }))
  const anthropic = new Anthropic({ apiKey: session.key, baseURL: pair.url, maxRetries: 0 })
  const claude = await anthropic.messages.stream({ model: 'm', max_tokens: 60, messages: MESSAGES }).finalMessage()
  const tooLong = await overWindow(openai)
  const ledger = await pair.ledger(session)
  const names = ['openai, whole', 'openai, streamed', 'anthropic, streamed']
  const texts = [whole, streamed, claude.content.map(block => ('text' in block ? block.text : '')).join('')]
  const checks: Check[] = [
    tooLong,
    {
      name: 'calls recorded',
      isGood: ledger.calls.length === names.length,
      detail: `${ledger.calls.length} of ${names.length}`,
    },
  ]
  const records = ledger.calls.map(({ record }) => record).sort((a, b) => a.sequence - b.sequence)
  for (const [index, record] of records.entries()) {
    const name = names[index] ?? '?'
    checks.push(
      untrainableCheck(name, record),
      await promptCheck(url, name, record),
      await textCheck(url, name, record, texts[index] ?? ''),
    )
  }
  return checks
}

function untrainableCheck(name: string, { notTrainable, promptIds, sampledIds, logprobs }: CompletionRecord): Check {
  const isBare = promptIds === null && sampledIds === null && logprobs === null
  return {
    name: `${name}: not trainable, no ids`,
    isGood: notTrainable === REASON && isBare,
    detail: `${notTrainable}, ${isBare ? 'none' : 'some'} recorded`,
  }
}

async function promptCheck(url: string, name: string, { request, promptTokens }: CompletionRecord): Promise<Check> {
  const { messages, tools } = request
  const { prompt } = await ask(url, '/apply-template', {
    ...(messages !== undefined && { messages }),
    ...(tools !== undefined && { tools }),
  })
  const { tokens } = await ask(url, '/tokenize', { content: String(prompt), parse_special: true })
  const counted = Array.isArray(tokens) ? tokens.length : -1
  return {
    name: `${name}: prompt tokens = its own template`,
    isGood: promptTokens > 0 && counted === promptTokens,
    detail: `${promptTokens} recorded, ${counted} by the engine`,
  }
}

/** The engine's seed makes its draws: the recorded request, sent again, has the same answer. */
async function textCheck(url: string, name: string, { request }: CompletionRecord, told: string): Promise<Check> {
  const again = await ask(url, '/v1/chat/completions', { ...request, stream: false })
  const choice = (again['choices'] as readonly { readonly message: { readonly content: string } }[] | undefined)?.[0]
  const said = choice?.message.content
  return {
    name: `${name}: text = the same seed asked again`,
    isGood: told.length > 0 && said === told,
    detail: said === told ? `${told.length} characters` : `${String(said).slice(0, 40)} / ${told.slice(0, 40)}`,
  }
}
