// What the policy may say, as a probabilistic grammar over token ids. A Part is text, a weighted choice or a sequence; compiled
// it is an automaton whose arcs carry ids, and a Walk keeps every path the sampled ids may have come by, with its probability.
// So the exact conditional distribution of the next id is known at each position, whatever prefixes the alternatives share.
//
// Tokenisation: each text is encoded by itself, so parts must meet where the tokenizer cuts anyway (before " word", around
// added tokens ...). That they do is tested over many seeds: each answer must encode to the ids it was sampled in.

import type { Tokenizer } from '../../tokenizer/tokenizer.js'
import { type Distribution, distribution } from '../distribution.js'

export type Part = string | Choice | Sequence | Loop

export interface Choice {
  readonly options: readonly Option[]
}
export interface Option {
  /** Above 0; relative to the other options. */
  readonly weight: number
  readonly part: Part
}
export interface Sequence {
  readonly parts: readonly Part[]
}
/** `body` again and again; after each round it ends with probability `end`. */
export interface Loop {
  readonly body: Part
  readonly end: number
}

/** All parts in order. */
export const sequence = (...parts: readonly Part[]): Part => ({ parts })

/** One of the options by weight. Options of weight 0 are left out. */
export const choice = (options: readonly Option[]): Part => ({ options: options.filter(({ weight }) => weight > 0) })

/** One of the parts; each is a little less likely than the one before it. */
export const oneOf = (...parts: readonly Part[]): Part =>
  choice(parts.map((part, index) => ({ weight: 1 / (index + 2), part })))

/** The part or nothing. */
export const maybe = (probability: number, part: Part): Part =>
  choice([
    { weight: probability, part },
    { weight: 1 - probability, part: '' },
  ])

interface State {
  /** Probabilities sum to 1. */
  arcs(): readonly Arc[]
}
interface Arc {
  readonly probability: number
  /** At least one id. */
  readonly ids: ArrayLike<number>
  /** null = the end. */
  readonly next: State | null
}

/** Ways to spell `text` in ids, with weights that sum to 1. The honest one is the tokenizer's own, alone. */
export type Speller = (text: string) => readonly { readonly probability: number; readonly ids: ArrayLike<number> }[]

export const canonical =
  (tokenizer: Tokenizer): Speller =>
  text => [{ probability: 1, ids: tokenizer.encode(text) }]

export interface Program {
  readonly start: State
}

/** The automaton of `part`; the same Program may be walked many times. The part must not be empty. */
export function compile(part: Part, spell: Speller): Program {
  const start = compilePart(part, null, spell)
  if (start === null) throw new Error('a program needs at least one token')
  return { start }
}

function compilePart(part: Part, next: State | null, spell: Speller): State | null {
  if (typeof part === 'string') {
    if (part === '') return next
    return lazily(() => spell(part).map(({ probability, ids }) => ({ probability, ids, next })))
  }
  if ('parts' in part)
    return part.parts.reduceRight<State | null>((after, piece) => compilePart(piece, after, spell), next)
  if ('body' in part) return compileLoop(part, next, spell)
  const total = part.options.reduce((sum, { weight }) => sum + weight, 0)
  return mixture(
    part.options.map(({ weight, part: option }) => ({
      probability: weight / total,
      state: () => compilePart(option, next, spell),
    })),
  )
}

function compileLoop(loop: Loop, next: State | null, spell: Speller): State | null {
  if (next === null) throw new Error('a loop needs something behind it')
  const around: State = lazily(() =>
    mixture([
      { probability: loop.end, state: () => next },
      { probability: 1 - loop.end, state: () => start },
    ]).arcs(),
  )
  const start = compilePart(loop.body, around, spell)
  return start
}

/** Options that are empty stand for what follows. At the very end that is nothing, which no automaton can draw. */
function mixture(options: readonly { readonly probability: number; state(): State | null }[]): State {
  return lazily(() =>
    options.flatMap(option => {
      const state = option.state()
      if (state === null) throw new Error('an optional part needs something behind it')
      return state.arcs().map(arc => ({ ...arc, probability: arc.probability * option.probability }))
    }),
  )
}

function lazily(make: () => readonly Arc[]): State {
  let arcs: readonly Arc[] | null = null
  return {
    arcs: () => {
      arcs ??= make()
      return arcs
    },
  }
}

/** One answer in the making. */
export interface Walk {
  /** Distribution of the next id; null at the end. */
  next(): Distribution | null
  /** Goes on with `id`, which must be a candidate of `next()`. */
  take(id: number): void
}

interface Path {
  readonly arc: Arc
  /** How many ids of the arc are behind us. */
  readonly offset: number
  readonly probability: number
}

export function walk(program: Program): Walk {
  let paths: readonly Path[] = program.start.arcs().map(arc => ({ arc, offset: 0, probability: arc.probability }))
  let ended = false
  let current: Distribution | null = null
  return {
    next: () => {
      if (ended) return null
      current ??= distribution(weightsOf(paths))
      return current
    },
    take: id => {
      const matching = paths.filter(({ arc, offset }) => arc.ids[offset] === id)
      if (matching.length === 0) throw new Error(`id ${id} is not a candidate`)
      const advanced: Path[] = []
      const entered = new Map<Arc, number>()
      for (const { arc, offset, probability } of matching) {
        if (offset + 1 < arc.ids.length) advanced.push({ arc, offset: offset + 1, probability })
        else if (arc.next === null) ended = true
        // Paths that meet in a state go on as one.
        else for (const on of arc.next.arcs()) entered.set(on, (entered.get(on) ?? 0) + probability * on.probability)
      }
      for (const [arc, probability] of entered) advanced.push({ arc, offset: 0, probability })
      if (ended && advanced.length > 0) throw new Error('an answer may not be the beginning of another')
      const total = advanced.reduce((sum, path) => sum + path.probability, 0)
      paths = advanced.map(path => ({ ...path, probability: path.probability / total }))
      current = null
    },
  }
}

function weightsOf(paths: readonly Path[]): Map<number, number> {
  const weights = new Map<number, number>()
  for (const { arc, offset, probability } of paths) {
    const id = arc.ids[offset] ?? -1
    weights.set(id, (weights.get(id) ?? 0) + probability)
  }
  return weights
}
