// Clients in miniature: each puts the frames of a stream together into the answer a non-streaming call would have given, and refuses what
// its API's SDK refuses (an unopened block, a skipped index, an event after the terminal one).

import type { DialectId } from '../../src/domain/conversation.js'
import { dataOf, type HeldFrame } from './dialects.js'

type Fields = Record<string, unknown>
// Test data: the shapes are asserted by the comparison with the whole answer.
interface LooseObject {
  readonly [key: string]: Loose
}
type Loose = LooseObject & string & number & readonly Loose[]

/** The answer that a client of `id` has after `frames`. Throws where the stream breaks the API's rules. */
export function accumulate(id: DialectId, frames: readonly HeldFrame[]): Fields {
  const data = dataOf(frames) as unknown as Loose[]
  switch (id) {
    case 'anthropic_messages':
      return anthropic(data, frames)
    case 'openai_chat':
      return chat(data, frames)
    case 'openai_responses':
      return responses(data, frames)
    case 'google_generate':
      return google(data, frames)
  }
}

const check = (claim: boolean, message: string) => {
  if (!claim) throw new Error(message)
}

/** Arguments of a call that was cut stay text: SDKs read what they can of them. */
function wholeOrText(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}

function anthropic(events: readonly Loose[], frames: readonly HeldFrame[]): Fields {
  let message: Fields = {}
  const content: Fields[] = []
  let open = false
  let json = ''
  for (const [position, event] of events.entries()) {
    check(frames[position]?.frame.event === event['type'], 'the event name is the type')
    check((position === 0) === (event['type'] === 'message_start'), 'message_start comes first and once')
    switch (event['type'] as string) {
      case 'message_start':
        message = { ...(event['message'] as Fields) }
        break
      case 'content_block_start':
        check(!open, 'one block at a time')
        check(event['index'] === content.length, 'indexes rise by one')
        content.push({ ...(event['content_block'] as Fields) })
        open = true
        json = ''
        break
      case 'content_block_delta': {
        check(open && event['index'] === content.length - 1, 'deltas belong to the open block')
        const block = content.at(-1) as Fields
        const delta = event['delta'] as Loose
        if (delta['type'] === 'text_delta') block['text'] = `${block['text']}${delta['text']}`
        else if (delta['type'] === 'thinking_delta') block['thinking'] = `${block['thinking']}${delta['thinking']}`
        else if (delta['type'] === 'signature_delta') block['signature'] = delta['signature']
        else json += delta['partial_json']
        break
      }
      case 'content_block_stop':
        check(open && event['index'] === content.length - 1, 'the open block is closed')
        if (json !== '') (content.at(-1) as Fields)['input'] = wholeOrText(json)
        open = false
        break
      case 'message_delta':
        check(!open, 'all blocks are closed before message_delta')
        message = { ...message, ...(event['delta'] as Fields), usage: event['usage'] }
        break
      case 'message_stop':
        check(position === events.length - 1, 'message_stop is last')
        break
      default:
        throw new Error(`unknown event ${String(event['type'])}`)
    }
  }
  return { ...message, content }
}

function chat(chunks: readonly Loose[], frames: readonly HeldFrame[]): Fields {
  check(frames.at(-1)?.frame.data === '[DONE]', '[DONE] is last')
  const message: Fields = { content: null }
  const calls: { id: unknown; type: unknown; function: { name: unknown; arguments: string } }[] = []
  let finish: unknown = null
  let usage: unknown
  for (const chunk of chunks) {
    usage = chunk['usage'] ?? usage
    const [choice] = chunk['choices'] as Loose[]
    if (choice === undefined) continue
    check(finish === null, 'nothing follows the finish reason')
    finish = choice['finish_reason']
    const delta = choice['delta'] as Loose
    if (delta['role']) message['role'] = delta['role']
    if (delta['content']) message['content'] = `${message['content'] ?? ''}${delta['content']}`
    if (delta['reasoning_content']) {
      message['reasoning_content'] = `${message['reasoning_content'] ?? ''}${delta['reasoning_content']}`
    }
    for (const call of (delta['tool_calls'] ?? []) as Loose[]) {
      const fields = call['function'] as Loose
      const known = calls[call['index'] as number]
      if (known === undefined) {
        calls[call['index'] as number] = {
          id: call['id'],
          type: call['type'],
          function: { name: fields['name'], arguments: String(fields['arguments']) },
        }
      } else known.function.arguments += fields['arguments']
    }
  }
  if (calls.length > 0) message['tool_calls'] = calls
  const [first] = chunks
  return {
    id: first?.['id'],
    object: 'chat.completion',
    created: first?.['created'],
    model: first?.['model'],
    choices: [{ index: 0, message, finish_reason: finish }],
    usage,
  }
}

/** As Codex: items come from `output_item.done` only; the rest is checked against them. */
function responses(events: readonly Loose[], frames: readonly HeldFrame[]): Fields {
  const output: Fields[] = []
  const deltas = new Map<string, string>()
  let terminal: Fields = {}
  for (const [position, event] of events.entries()) {
    check(frames[position]?.frame.event === event['type'], 'the event name is the type')
    check(event['sequence_number'] === position, 'sequence numbers rise by one')
    const type = event['type'] as string
    if (event['item_id'] !== undefined) {
      check(event['output_index'] === output.length, 'events belong to the open item')
    }
    if (type.endsWith('.delta')) {
      deltas.set(event['item_id'] as string, `${deltas.get(event['item_id'] as string) ?? ''}${event['delta']}`)
    }
    if (type === 'response.output_item.done') {
      const item = event['item'] as Loose
      const [part] = (item['content'] ?? item['summary'] ?? []) as Loose[]
      const text = item['arguments'] ?? item['input'] ?? part?.['text']
      if (text !== undefined) check(text === (deltas.get(item['id'] as string) ?? ''), 'deltas give the item')
      output.push(item)
    }
    if (/^response\.(completed|incomplete|failed)$/.test(type)) {
      check(position === events.length - 1, 'the terminal event is last')
      terminal = event['response'] as Fields
    }
  }
  check(JSON.stringify(terminal['output']) === JSON.stringify(output), 'the terminal event repeats the items')
  return terminal
}

function google(chunks: readonly Loose[], frames: readonly HeldFrame[]): Fields {
  const parts: Fields[] = []
  let finish: unknown
  for (const [position, chunk] of chunks.entries()) {
    check(frames[position]?.frame.event === null, 'no event names')
    const [candidate] = chunk['candidates'] as Loose[]
    check(finish === undefined, 'nothing follows the finish reason')
    finish = candidate?.['finishReason']
    for (const part of (candidate?.['content']?.['parts'] ?? []) as Loose[]) {
      const last = parts.at(-1)
      if (part['text'] === '') continue
      const isSame = last !== undefined && typeof last['text'] === 'string' && last['thought'] === part['thought']
      if (isSame && typeof part['text'] === 'string') last['text'] = `${last['text']}${part['text']}`
      else parts.push({ ...(part as unknown as Fields) })
    }
  }
  const last = chunks.at(-1) as unknown as Fields
  return { ...last, candidates: [{ content: { parts, role: 'model' }, finishReason: finish, index: 0 }] }
}
