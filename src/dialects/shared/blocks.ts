// Turns the events of a live answer into blocks that open, grow and close one after the other: at most one is open at any time, whatever
// the order in which the engine interleaves parallel calls (obligation A-100). Pieces for a later block wait until the earlier ones close.
// The last block closes with the answer's end, so that a call cut by the token limit is known as cut when it closes.

import type { CanonicalEvent, CanonicalResponse, ToolCall } from '../../domain/conversation.js'
import { RolloutError } from '../../domain/errors.js'

export type BlockStep =
  | { readonly type: 'open'; readonly kind: 'reasoning' | 'text' }
  | { readonly type: 'open'; readonly kind: 'call'; readonly id: string; readonly name: string }
  | { readonly type: 'delta'; readonly text: string }
  /** `cut`: the answer ended at the token limit with this as its last block. */
  | { readonly type: 'close'; readonly kind: 'reasoning' | 'text'; readonly text: string; readonly cut: boolean }
  | { readonly type: 'close'; readonly kind: 'call'; readonly call: ToolCall; readonly cut: boolean }

/** Deltas, call events and the end of one answer; `response-start` is none of its business. */
export type BlockEvent = Exclude<CanonicalEvent, { readonly type: 'response-start' }>

interface Block {
  readonly kind: 'reasoning' | 'text' | 'call'
  readonly id: string
  readonly name: string
  readonly pieces: string[]
  text: string
  isOpen: boolean
  hasEnded: boolean
}

/** Sequencer of one answer. Throws INTERNAL_BUG for a piece of a call that was never started. */
export class BlockSequencer {
  readonly #blocks: Block[] = []
  readonly #calls = new Map<number, Block>()
  #head = 0

  push(event: BlockEvent): BlockStep[] {
    switch (event.type) {
      case 'reasoning-delta':
        this.#grow('reasoning', event.text)
        return this.#drain(false)
      case 'text-delta':
        this.#grow('text', event.text)
        return this.#drain(false)
      case 'tool-call-start':
        this.#calls.set(event.index, this.#add('call', event.id, event.name))
        return this.#drain(false)
      case 'tool-call-delta':
        append(this.#call(event.index), event.arguments)
        return this.#drain(false)
      case 'tool-call-end':
        this.#call(event.index).hasEnded = true
        return this.#drain(false)
      case 'response-end':
        if (this.#blocks.length === 0) this.#fill(event.response)
        return this.#drain(true, event.response.finish === 'length')
    }
  }

  #grow(kind: 'reasoning' | 'text', text: string): void {
    const last = this.#blocks.at(-1)
    append(last?.kind === kind ? last : this.#add(kind, '', ''), text)
  }

  #add(kind: Block['kind'], id: string, name: string): Block {
    const block: Block = { kind, id, name, pieces: [], text: '', isOpen: false, hasEnded: kind !== 'call' }
    this.#blocks.push(block)
    return block
  }

  #call(index: number): Block {
    const block = this.#calls.get(index)
    if (block === undefined) throw new RolloutError('INTERNAL_BUG', `tool call ${index} got a piece before its start`)
    return block
  }

  /** An answer that came without deltas (a buffered call) is given whole. */
  #fill({ reasoning, content, toolCalls }: CanonicalResponse): void {
    if (reasoning) this.#grow('reasoning', reasoning)
    if (content) this.#grow('text', content)
    for (const call of toolCalls) append(this.#add('call', call.id, call.name), call.arguments)
  }

  #drain(isEnd: boolean, atLimit = false): BlockStep[] {
    const steps: BlockStep[] = []
    for (let block = this.#blocks[this.#head]; block !== undefined; block = this.#blocks[this.#head]) {
      if (!block.isOpen) steps.push(opening(block))
      block.isOpen = true
      steps.push(...block.pieces.splice(0).map(text => ({ type: 'delta', text }) as const))
      const isLast = this.#head === this.#blocks.length - 1
      if (!isEnd && (isLast || !block.hasEnded)) break
      steps.push(closing(block, isLast && atLimit))
      this.#head += 1
    }
    return steps
  }
}

function append(block: Block, text: string): void {
  if (text === '') return
  block.text += text
  block.pieces.push(text)
}

const opening = ({ kind, id, name }: Block): BlockStep =>
  kind === 'call' ? { type: 'open', kind, id, name } : { type: 'open', kind }

const closing = ({ kind, id, name, text }: Block, cut: boolean): BlockStep =>
  kind === 'call'
    ? { type: 'close', kind, call: { id, name, arguments: text }, cut }
    : { type: 'close', kind, text, cut }
