// Writing parts by hand: prose with alternatives, commands inside JSON, and the joints between them. Pieces are cut so that they
// begin with a space or a letter after punctuation and end with a letter, where Qwen's pre-tokenizer cuts anyway.

import { choice, maybe, oneOf, type Part, sequence } from './grammar.js'

/**
 * Text with alternatives in braces: `the {failing|broken|} test`. A space before a group belongs to each option that is not
 * empty. The first option is the likeliest. The text itself can hold no braces.
 */
export function phrase(text: string): Part {
  const parts: Part[] = []
  const pieces = text.split(/\{([^}]*)\}/)
  for (let index = 0; index < pieces.length; index += 2) {
    const literal = pieces[index] ?? ''
    const group = pieces[index + 1]
    const spaced = group !== undefined && literal.endsWith(' ')
    parts.push(spaced ? literal.slice(0, -1) : literal)
    if (group === undefined) continue
    parts.push(oneOf(...group.split('|').map(option => (spaced && option !== '' ? ` ${option}` : option))))
  }
  return sequence(...parts.filter(part => part !== ''))
}

/** One of several phrases. */
export const phrases = (...texts: readonly string[]): Part => oneOf(...texts.map(phrase))

/** Sentences behind one another, without the last full stop. A sentence with a probability may be left out (never the first). */
export function prose(
  first: Part,
  ...rest: readonly { readonly probability: number; readonly sentence: Part }[]
): Part {
  const following = rest.map(({ probability, sentence }) => {
    const joined = sequence('.', lead(' ', sentence))
    return probability >= 1 ? joined : maybe(probability, joined)
  })
  return sequence(first, ...following)
}

/** `part` with `text` put before whatever it begins with. The part may not begin with something optional. */
export function lead(text: string, part: Part): Part {
  if (typeof part === 'string') {
    if (part === '') throw new Error('nothing can be put before an empty part')
    return text + part
  }
  if ('options' in part) return choice(part.options.map(option => ({ ...option, part: lead(text, option.part) })))
  if ('body' in part) throw new Error('nothing can be put before a loop')
  const [first, ...others] = part.parts
  if (first === undefined) throw new Error('nothing can be put before an empty part')
  return sequence(lead(text, first), ...others)
}

/** `part` with every text in it changed by `change`, which must act on characters alone. */
export function mapTexts(part: Part, change: (text: string) => string): Part {
  if (typeof part === 'string') return change(part)
  if ('options' in part) return choice(part.options.map(option => ({ ...option, part: mapTexts(option.part, change) })))
  if ('body' in part) return { ...part, body: mapTexts(part.body, change) }
  return sequence(...part.parts.map(piece => mapTexts(piece, change)))
}

/** The characters of `text` as they stand between the quotes of a JSON string. */
export const jsonEscape = (text: string): string => JSON.stringify(text).slice(1, -1)
