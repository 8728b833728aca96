// What is asked and answered in the proxy's benchmark: chat requests of a wanted size, and answers of 300 tokens with ids and logprobs as
// vLLM gives them, whole and streamed. Both are made once; a call costs the client and the engine only the bytes.

export const ANSWER_TOKENS = 300
/** Bytes of prompt text for one token: 400 KB are about 128k tokens. */
const BYTES_PER_TOKEN = 3.2
const MESSAGE_BYTES = 2_000

export const promptTokensOf = (bytes: number): number => Math.round(bytes / BYTES_PER_TOKEN)

/**
 * A conversation of about `bytes`, as an agent sends it: instructions, a task, then answers with tool calls and their results.
 * `call` makes each request differ from the others in its last message.
 */
export function requestBody(bytes: number, call: string, stream: boolean): string {
  const messages: object[] = [{ role: 'system', content: prose(Math.min(1_000, bytes / 4), 0) }]
  let left = bytes - 1_000
  for (let turn = 0; left > MESSAGE_BYTES; turn += 1) {
    const id = `call_${turn}`
    messages.push(
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id, type: 'function', function: { name: 'shell', arguments: `{"command": "cat file-${turn}"}` } },
        ],
      },
      { role: 'tool', tool_call_id: id, content: prose(MESSAGE_BYTES - 200, turn) },
    )
    left -= MESSAGE_BYTES
  }
  messages.splice(1, 0, { role: 'user', content: prose(Math.max(0, left), 1) })
  messages.push({ role: 'user', content: `go on ${call}` })
  return JSON.stringify({
    model: 'policy',
    stream,
    messages,
    tools: [
      {
        type: 'function',
        function: { name: 'shell', parameters: { type: 'object', properties: { command: { type: 'string' } } } },
      },
    ],
  })
}

/** Text of about `bytes` with line ends and quotes, as files and logs have them. */
function prose(bytes: number, salt: number): string {
  const line = `line ${salt}: const value = compute("input", { depth: ${salt % 7} }) // ok\n`
  return line.repeat(Math.ceil(bytes / line.length)).slice(0, Math.max(0, Math.floor(bytes)))
}

const token = (index: number) => 1_000 + ((index * 7_919) % 100_000)
const logprob = (index: number) => -((index % 37) / 17 + 0.013)
const entry = (index: number) => ({ token: ` w${index}`, logprob: logprob(index), bytes: [32, 119], top_logprobs: [] })
const head = { id: 'chatcmpl-perf', created: 1_700_000_000, model: 'policy' }

const promptIds = (count: number): number[] => Array.from({ length: count }, (_, index) => token(index))
const usageOf = (promptTokens: number) => ({
  prompt_tokens: promptTokens,
  completion_tokens: ANSWER_TOKENS,
  total_tokens: promptTokens + ANSWER_TOKENS,
})
const indexes = Array.from({ length: ANSWER_TOKENS }, (_, index) => index)

export function wholeAnswer(promptTokens: number): string {
  return JSON.stringify({
    ...head,
    object: 'chat.completion',
    prompt_token_ids: promptIds(promptTokens),
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: indexes.map(index => ` w${index}`).join('') },
        logprobs: { content: indexes.map(entry) },
        finish_reason: 'stop',
        stop_reason: null,
        token_ids: indexes.map(token),
      },
    ],
    usage: usageOf(promptTokens),
  })
}

/** One event a token, as vLLM streams when it is not behind. */
export function streamedAnswer(promptTokens: number): string {
  const event = (data: object) => `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...data })}\n\n`
  return [
    event({
      prompt_token_ids: promptIds(promptTokens),
      choices: [{ index: 0, delta: { role: 'assistant', content: '' } }],
    }),
    ...indexes.map(index =>
      event({
        choices: [
          {
            index: 0,
            delta: { content: ` w${index}` },
            logprobs: { content: [entry(index)] },
            token_ids: [token(index)],
            finish_reason: index === ANSWER_TOKENS - 1 ? 'stop' : null,
          },
        ],
      }),
    ),
    event({ choices: [], usage: usageOf(promptTokens) }),
    'data: [DONE]\n\n',
  ].join('')
}
