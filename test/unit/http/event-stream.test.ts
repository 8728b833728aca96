import t from 'tap'
import { eventsOf } from '../../../src/http/event-stream.js'
import { vllm } from '../../../src/upstreams/vllm.js'

const chunks = (text: string): Uint8Array => new TextEncoder().encode(text)

const body = [
  `data: {"prompt_token_ids":[1,2,3],"choices":[{"index":0,"delta":{"content":"na\u00efve 🙂"},"token_ids":[7,8],"logprobs":{"content":[{"logprob":-0.5},{"logprob":-1}]}}]}`,
  `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop","token_ids":[99],"logprobs":{"content":[{"logprob":-0.25}]}}]}`,
  `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6}}`,
  'data: [DONE]',
]
const plain = `${body.join('\n\n')}\n\n`

async function read(pieces: readonly Uint8Array[]): Promise<unknown> {
  async function* source() {
    yield* pieces
  }
  const reader = vllm.streamReader()
  const deltas = []
  for await (const { data } of eventsOf(source())) deltas.push(...reader.push(data))
  const { answer, complete } = reader.answer()
  return { text: deltas.map(delta => (delta.type === 'text' ? delta.text : '')).join(''), answer, complete }
}

t.test('any cut of the bytes of an engine stream gives the same text, ids and usage', async t => {
  const bytes = chunks(plain)
  const wanted = await read([bytes])
  t.match(wanted, {
    text: 'naïve 🙂',
    complete: true,
    answer: { finish: 'stop', usage: { promptTokens: 3, completionTokens: 3 } },
  })
  for (let at = 1; at < bytes.length; at += 1) {
    const got = await read([bytes.subarray(0, at), bytes.subarray(at)])
    if (JSON.stringify(got) !== JSON.stringify(wanted)) t.fail(`differs when cut at byte ${at}`)
  }
  t.strictSame(await read([...bytes].map(byte => Uint8Array.of(byte))), wanted, 'one byte at a time')
  t.strictSame(await read([chunks(plain.replaceAll('\n', '\r\n'))]), wanted, 'CRLF')
  t.strictSame(
    await read([...chunks(plain.replaceAll('\n', '\r\n'))].map(byte => Uint8Array.of(byte))),
    wanted,
    'CRLF, one byte at a time',
  )
  t.strictSame(await read([chunks(plain.replaceAll('data: ', 'data:'))]), wanted, 'no space')
  t.strictSame(await read([chunks(plain.replace(',"choices"', '\ndata: ,"choices"'))]), wanted, 'two data lines')
  t.strictSame(await read([chunks(plain.trimEnd())]), wanted, 'no blank line at the end')
  t.strictSame(await read([chunks(`: ping\n\n${plain}`)]), wanted, 'a comment first')
})
