// vLLM's wire over real HTTP: whole answers and streams, tokenizer routes, errors, and what happens when the client leaves.

import t from 'tap'
import type { Clock } from '../../../src/domain/clock.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { loadTokenizer } from '../../../src/tokenizer/tokenizer.js'
import { HARNESS_TOOLS } from '../../support/harness-tools.js'
import { type ChatChoice, chat, chatChunks, post, simulate } from '../../support/simulation.js'

const qwen3 = loadTokenizer('qwen3')
const tools = HARNESS_TOOLS['opencode'] ?? []
const messages = [{ role: 'user', content: 'Fix the median.\n\nScenario: fix-calculator' }]
const ask = { messages, tools, seed: 11 }

t.test('a whole answer has ids, logprobs and usage that agree', async t => {
  const simulation = await simulate(t)
  const { choice, prompt_token_ids: prompt, usage } = await chat(simulation, { ...ask, top_logprobs: 3 })
  const ids = choice.token_ids ?? []
  t.strictSame(prompt, [...qwen3.encode(qwen3.renderChat({ messages, tools, addGenerationPrompt: true }))])
  t.match(usage, {
    prompt_tokens: prompt?.length,
    completion_tokens: ids.length,
    total_tokens: (prompt?.length ?? 0) + ids.length,
  })
  t.equal(ids.at(-1), 151645, 'the end token is among the sampled ids')
  const entries = choice.logprobs?.content ?? []
  t.equal(entries.length, ids.length)
  for (const [index, entry] of entries.entries()) {
    t.ok(entry.logprob <= 0)
    t.strictSame(entry.bytes, [...qwen3.bytesOf(ids[index] ?? -1)])
    t.ok(entry.top_logprobs.length >= 1 && entry.top_logprobs.length <= 3)
    t.equal(
      entry.logprob,
      Math.fround(entry.logprob) === entry.logprob ? entry.logprob : Number(entry.logprob.toPrecision(9)),
    )
  }
  t.ok(entries.some(entry => entry.logprob < -0.1))
  t.equal(choice.finish_reason, 'tool_calls')
  const { reasoning, tool_calls: calls } = choice.message
  t.match(reasoning, /^[A-Z].*\.$/s)
  t.match(calls, [
    { id: /^chatcmpl-tool-/, type: 'function', function: { name: 'bash', arguments: /"description": "/ } },
  ])
})

t.test('among the best tokens the sampled one stands first, whatever its rank', async t => {
  const simulation = await simulate(t)
  const { choice } = await chat(simulation, { ...ask, top_logprobs: 2 })
  const entries = choice.logprobs?.content ?? []
  for (const entry of entries) t.strictSame(entry.top_logprobs[0]?.bytes, entry.bytes)
  t.ok(
    entries.some(({ top_logprobs: [sampled, best] }) => best && sampled && best.logprob > sampled.logprob),
    'not only the likeliest is sampled',
  )
})

t.test('ids and logprobs are left out when nobody asks for them', async t => {
  const simulation = await simulate(t)
  const response = await post(simulation, '/v1/chat/completions', { model: 'policy', ...ask })
  const body = await response.json()
  t.match(body, { prompt_token_ids: null, choices: [{ token_ids: null, logprobs: null }] })
})

interface Collected {
  readonly ids: readonly number[]
  readonly logprobs: number
  readonly reasoning: string
  readonly content: string
  readonly calls: readonly { readonly name: string; readonly arguments: string }[]
  readonly finish: unknown
}

function collect(chunks: readonly Record<string, unknown>[]): Collected {
  const ids: number[] = []
  const text = { reasoning: '', content: '' }
  const calls: { name: string; arguments: string }[] = []
  let logprobs = 0
  let finish: unknown = null
  for (const chunk of chunks) {
    for (const choice of chunk['choices'] as readonly (ChatChoice & { delta: Record<string, unknown> })[]) {
      ids.push(...(choice.token_ids ?? []))
      logprobs += choice.logprobs?.content.length ?? 0
      finish = choice.finish_reason ?? finish
      for (const key of ['reasoning', 'content'] as const) text[key] += choice.delta[key] ?? ''
      for (const call of (choice.delta['tool_calls'] ?? []) as readonly {
        index: number
        function: { name?: string; arguments?: string }
      }[]) {
        calls[call.index] ??= { name: '', arguments: '' }
        const known = calls[call.index] ?? { name: '', arguments: '' }
        known.name += call.function.name ?? ''
        known.arguments += call.function.arguments ?? ''
      }
    }
  }
  return { ids, logprobs, ...text, calls, finish }
}

for (const interval of [1, 3, 1000]) {
  t.test(`a stream says what the whole answer says, ${interval} tokens a chunk`, async t => {
    const simulation = await simulate(t)
    for (let seed = 0; seed < 12; seed++) {
      const body = { ...ask, seed, logprobs: true, return_token_ids: true, stream_interval: interval }
      const whole = await chat(simulation, body)
      const chunks = await chatChunks(simulation, { ...body, stream_options: { include_usage: true } })
      const [first] = chunks
      t.strictSame(first?.['prompt_token_ids'], whole.prompt_token_ids)
      t.notOk(
        chunks.slice(1).some(chunk => 'prompt_token_ids' in chunk),
        'only the first chunk has them',
      )
      const streamed = collect(chunks)
      const { message, token_ids: ids, finish_reason: finish } = whole.choice
      t.strictSame(streamed.ids, ids)
      t.equal(streamed.logprobs, ids?.length)
      t.equal(streamed.reasoning, message.reasoning)
      t.equal(streamed.content, message.content ?? '')
      t.strictSame(
        streamed.calls,
        message.tool_calls?.map(call => call.function),
      )
      t.equal(streamed.finish, finish)
      t.strictSame(chunks.at(-1)?.['choices'], [])
      t.match(chunks.at(-1)?.['usage'], { completion_tokens: ids?.length, prompt_tokens: whole.usage.prompt_tokens })
    }
  })
}

t.test('max_tokens ends the answer with length, and ids are exactly as many', async t => {
  const simulation = await simulate(t)
  const cut = await chat(simulation, { ...ask, max_tokens: 7 })
  t.match(cut.choice, { finish_reason: 'length', message: { content: null, tool_calls: undefined } })
  t.equal(cut.choice.token_ids?.length, 7)
  const whole = await chat(simulation, ask)
  t.strictSame(
    cut.choice.token_ids,
    whole.choice.token_ids?.slice(0, 7),
    'the cut answer is the beginning of the whole one',
  )
})

t.test('a stop string cuts the text, not the ids, streaming or not', async t => {
  const simulation = await simulate(t)
  const body = {
    messages: [{ role: 'user', content: 'hi' }],
    seed: 4,
    chat_template_kwargs: { enable_thinking: false },
  }
  const whole = await chat(simulation, body)
  const said = whole.choice.message.content ?? ''
  const stop = said.slice(4, 9)
  const stopped = await chat(simulation, { ...body, stop: [stop] })
  t.equal(stopped.choice.message.content, said.slice(0, said.indexOf(stop)))
  t.match(stopped.choice, { finish_reason: 'stop', stop_reason: stop })
  t.ok(qwen3.decode(stopped.choice.token_ids ?? []).includes(stop))
  const chunks = await chatChunks(simulation, { ...body, stop, stream_interval: 1, return_token_ids: true })
  t.equal(collect(chunks).content, stopped.choice.message.content)
  t.strictSame(collect(chunks).ids, stopped.choice.token_ids)
})

t.test('a second prompt that extends the first finds it in the prefix cache', async t => {
  const simulation = await simulate(t)
  const first = await chat(simulation, ask)
  t.equal(first.usage.prompt_tokens_details.cached_tokens, 0)
  const longer = {
    ...ask,
    messages: [...messages, { role: 'assistant', content: 'Yes.' }, { role: 'user', content: 'Go on.' }],
  }
  const second = await chat(simulation, longer)
  const { cached_tokens: cached } = second.usage.prompt_tokens_details
  t.ok(cached > 0 && cached <= first.usage.prompt_tokens && cached % 16 === 0, `${cached} cached`)
})

t.test('with thinking switched off the answer has none', async t => {
  const simulation = await simulate(t)
  const { choice, prompt_token_ids: prompt } = await chat(simulation, {
    ...ask,
    chat_template_kwargs: { enable_thinking: false },
  })
  t.strictSame(prompt?.slice(-4), [151667, 271, 151668, 271])
  t.equal(choice.message.reasoning, null)
  t.equal(choice.finish_reason, 'tool_calls')
})

t.test('tokenize and detokenize are inverse, and count a chat as it is prompted', async t => {
  const simulation = await simulate(t)
  const text = 'naïve <think> 👩‍🚀'
  const tokenize = async (body: unknown): Promise<Record<string, unknown>> =>
    Object(await (await post(simulation, '/tokenize', body)).json())
  const tokens = await tokenize({ prompt: text, return_token_strs: true })
  t.match(tokens, { count: qwen3.encode(text).length, max_model_len: 32768, tokens: [...qwen3.encode(text)] })
  t.match(tokens['token_strs'], { length: tokens['count'] })
  t.strictSame(await (await post(simulation, '/detokenize', { tokens: tokens['tokens'] })).json(), { prompt: text })
  const asked = await chat(simulation, ask)
  const counted = await tokenize({ messages, tools })
  t.equal(counted['count'], asked.usage.prompt_tokens)
  const bare = await tokenize({ messages, tools, add_generation_prompt: false })
  t.equal(bare['count'], Number(counted['count']) - 3)
})

t.test('health and models answer', async t => {
  const simulation = await simulate(t)
  t.equal((await fetch(`${simulation.url}/health`)).status, 200)
  t.match(await (await fetch(`${simulation.url}/v1/models`)).json(), {
    object: 'list',
    data: [{ id: 'policy', max_model_len: 32768, owned_by: 'vllm' }],
  })
})

t.test('errors have the shape and the status of vLLM and name the field', async t => {
  const simulation = await simulate(t, { contextWindow: 300 })
  const user = [{ role: 'user', content: 'hi' }]
  const long = [{ role: 'user', content: 'word '.repeat(400) }]
  const cases: readonly (readonly [unknown, number, string, RegExp])[] = [
    ['{', 400, 'BadRequestError', /no JSON/],
    [{ model: 'policy' }, 400, 'BadRequestError', /^messages: /],
    [{ model: 'other', messages: user }, 404, 'NotFoundError', /`other` does not exist/],
    [{ messages: user, temperature: -1 }, 400, 'BadRequestError', /^temperature: /],
    [{ messages: user, tools: [{}] }, 400, 'BadRequestError', /^tools\[0\]\.function: /],
    [{ messages: user, top_logprobs: 3 }, 400, 'BadRequestError', /`logprobs` must be set/],
    [{ messages: user, tool_choice: 'required' }, 400, 'BadRequestError', /`tools` must be set/],
    [{ messages: user, truncate_prompt_tokens: 5 }, 400, 'BadRequestError', /never cuts a prompt/],
    [{ messages: user, repetition_penalty: 1.1 }, 400, 'BadRequestError', /^repetition_penalty: .*does not apply/],
    [{ messages: user, logit_bias: { 5: 1 } }, 400, 'BadRequestError', /^logit_bias/],
    [{ messages: user, n: 2 }, 400, 'BadRequestError', /one choice/],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url' }] }] },
      400,
      'BadRequestError',
      /messages\[0\]\.content\[0\]/,
    ],
    [
      { messages: long },
      400,
      'BadRequestError',
      /maximum context length is 300 tokens\. However, your prompt contains at least 301 input tokens/,
    ],
  ]
  for (const [body, status, type, message] of cases) {
    const response = await post(simulation, '/v1/chat/completions', body)
    t.match(await response.json(), { error: { message, type, code: status } })
    t.equal(response.status, status)
  }
  const nothing = await post(simulation, '/v1/nothing', {})
  t.equal(nothing.status, 404)
  t.strictSame(await nothing.json(), { detail: 'Not Found' })
  const { usage } = await chat(simulation, { messages: user, max_tokens: 299 })
  t.ok(usage.total_tokens <= 300, 'max_tokens over what is left is cut, not refused')
  t.equal((await fetch(`${simulation.url}/v1/chat/completions`)).status, 405)
  t.equal((await post(simulation, '/detokenize', { tokens: [10_000_000] })).status, 400)
})

/** A clock whose sleepers wake only when the test says so. */
function heldClock(): Clock & { readonly slept: Promise<number>; wake(): void } {
  let announce: (ms: number) => void = () => {}
  let release: () => void = () => {}
  const slept = new Promise<number>(resolve => {
    announce = resolve
  })
  return {
    now: () => 0,
    slept,
    wake: () => release(),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        release = resolve
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
        announce(ms)
      }),
  }
}

for (const stream of [true, false]) {
  t.test(`a client that leaves aborts the generation (stream ${stream})`, async t => {
    const clock = heldClock()
    const simulation = await simulate(t, { prefillMsPer1k: 1000 }, { clock })
    const leaving = new AbortController()
    const answer = fetch(`${simulation.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ ...ask, stream }),
      signal: leaving.signal,
    }).then(response => response.text())
    const prompt = qwen3.encode(qwen3.renderChat({ messages, tools, addGenerationPrompt: true }))
    t.equal(await clock.slept, prompt.length, 'prefill takes a second per 1,000 tokens')
    t.strictSame(simulation.load(), { running: 1, finished: 0, aborted: 0 })
    leaving.abort()
    await t.rejects(answer)
    // The next answered request shows that the server has seen the first one leave.
    while (simulation.load().running > 0) await (await fetch(`${simulation.url}/load`)).json()
    t.strictSame(simulation.load(), { running: 0, finished: 0, aborted: 1 })
  })
}

t.test('closing ends what runs', async t => {
  const clock = heldClock()
  const simulation = await simulate(t, { decodeMsPerToken: 5 }, { clock })
  const answer = post(simulation, '/v1/chat/completions', {
    model: 'policy',
    ...ask,
    stream: true,
  } satisfies JsonObject)
  t.equal(await clock.slept, 5)
  await simulation.close()
  await t.rejects(answer.then(response => response.text()))
  t.equal(simulation.load().aborted, 1)
})

t.test('an unknown drift form is refused by name', async t => {
  await t.rejects(simulate(t, { drift: ['bpe', 'sideways'] }), {
    code: 'CONFIG_INVALID',
    message: /simulation\.drift\[1\]: unknown form "sideways"; known: two_line_feeds/,
  })
})
