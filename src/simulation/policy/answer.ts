// From what the policy wants to say to the text of an answer, in the form Qwen3's chat template gives that answer back when the
// harness replays it: thinking, at most one line feed between text and call, ": " and ", " in the JSON, the end token.
// Then prompt + answer is the beginning of the next prompt, id by id. The drift forms break exactly that, each in one way.

import type { Tokenizer } from '../../tokenizer/tokenizer.js'
import type { DriftForm } from '../drift.js'
import { canonical, choice, type Part, type Speller, sequence } from './grammar.js'
import { mapTexts } from './prose.js'

/** Something the policy may do next. */
export interface Reply {
  /** Relative to the other replies. */
  readonly weight: number
  /** Thinking, without its last full stop. */
  readonly thought: Part
  /** Visible text without its last full stop; null = none. Never empty. */
  readonly say: Part | null
  /** Probability that the text is said at all; default 1. */
  readonly sayProbability?: number
  /** The text ends as it is, e.g. as JSON does. */
  readonly closed?: boolean
  /** Whole `<tool_call>` elements. */
  readonly calls: readonly Part[]
}

export interface AnswerStyle {
  /** False: the prompt already holds an empty think block. */
  readonly thinking: boolean
  readonly drift: ReadonlySet<DriftForm>
}

/** The answer for one of `replies` (at least one). */
export function answer(replies: readonly Reply[], style: AnswerStyle): Part {
  return sequence(choice(replies.map(reply => ({ weight: reply.weight, part: replyPart(reply, style) }))), '<|im_end|>')
}

function replyPart(reply: Reply, { thinking, drift }: AnswerStyle): Part {
  const gap = drift.has('two_line_feeds') ? '\n\n' : '\n'
  const calls = reply.calls.flatMap((call, index) => {
    const written = drift.has('compact_json') ? compact(call) : call
    return index === 0 ? [written] : ['\n', written]
  })
  // A stop and the line feeds behind it are one pre-token, hence one text.
  const stop = (reply.closed ? '' : '.') + (calls.length > 0 ? gap : '')
  const silent = thinking ? (drift.has('two_line_feeds') && calls.length > 0 ? '\n\n\n' : '\n\n') : ''
  const said = reply.say === null ? null : sequence(thinking ? '\n\n' : '', reply.say, stop)
  const probability = said === null ? 0 : (reply.sayProbability ?? 1)
  return sequence(
    ...(thinking ? ['<think>\n', reply.thought, '.\n', '</think>'] : []),
    choice([
      { weight: probability, part: said ?? '' },
      { weight: 1 - probability, part: silent },
    ]),
    ...calls,
  )
}

/** The arguments' first members without their spaces: `{"command":"` and `","description":"`. */
const compact = (call: Part): Part =>
  mapTexts(call, text =>
    text.replace(/("arguments": \{"\w+": )/, found => found.replace(/": $/, '":')).replace(/^", "/, '","'),
  )

/** How texts are spelled in ids: as the tokenizer does, and under `bpe` now and then with a word in two pieces. */
export function speller(tokenizer: Tokenizer, drift: ReadonlySet<DriftForm>): Speller {
  const honest = canonical(tokenizer)
  if (!drift.has('bpe')) return honest
  return text => {
    const ids = tokenizer.encode(text)
    const split = splitOne(tokenizer, ids)
    return split
      ? [
          { probability: 0.85, ids },
          { probability: 0.15, ids: split },
        ]
      : [{ probability: 1, ids }]
  }
}

/** `ids` with the first word that can be split in two vocabulary entries split; null when there is none. */
function splitOne(tokenizer: Tokenizer, ids: Int32Array): Int32Array | null {
  for (const [place, id] of ids.entries()) {
    const word = tokenizer.decode([id])
    if (!/^ ?[A-Za-z]{3,}$/.test(word)) continue
    for (let cut = word.length - 1; cut > 1; cut--) {
      const left = tokenizer.idOf(word.slice(0, cut).replace(' ', 'Ġ'))
      const right = tokenizer.idOf(word.slice(cut))
      if (left !== undefined && right !== undefined) {
        return Int32Array.of(...ids.subarray(0, place), left, right, ...ids.subarray(place + 1))
      }
    }
  }
  return null
}
