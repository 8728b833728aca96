// Which sampled tokens a set of traces trains, and behind which context: traces are compared with the calls, token by token, whoever
// built them. A call is recognised by its sampled ids and, where several sampled the same, by what stands before them. Contexts are
// compared by length and hash. Pure; linear in the tokens of the traces.

import { feed, hashKey, type RollingHash, startHash } from '../ledger/token-hash.js'

export interface PlacedCall {
  readonly id: string
  /** Never empty. */
  readonly sampled: Int32Array
  /** Length and hash of what the model saw; null = not known. */
  readonly context: Context | null
}

export interface Context {
  readonly length: number
  readonly hash: number
}

/** What is trained where. */
export interface TraceTokens {
  readonly promptIds: Int32Array
  readonly responseIds: Int32Array
  readonly mask: Uint8Array
}

export interface Placement {
  readonly traces: number
  /** Prompt and response of every trace. */
  readonly trainerTokens: number
  /** Sampled tokens trained at least once. */
  readonly trained: number
  /** Of them, those whose every training is behind a context that the model did not see. */
  readonly unseen: number
  /** Trainings beyond the first. */
  readonly twice: number
  /** Trained, though no known call sampled them. */
  readonly foreign: number
}

interface Use {
  readonly call: PlacedCall
  /** Most of its tokens that one training covers. */
  tokens: number
  times: number
  /** Tokens over all trainings. */
  total: number
  seen: boolean
}

/** Compares what `traces` train with `calls`. */
export function placementOf(traces: readonly TraceTokens[], calls: readonly PlacedCall[]): Placement {
  const byFirst = new Map<number, Use[]>()
  const uses = calls.map((call): Use => ({ call, tokens: 0, times: 0, total: 0, seen: false }))
  for (const use of uses) {
    const first = use.call.sampled[0] ?? -1
    const list = byFirst.get(first)
    if (list) list.push(use)
    else byFirst.set(first, [use])
  }
  let foreign = 0
  const open: Spot[] = []
  for (const trace of traces) foreign += place(trace, byFirst, open)
  // What stands behind its own context is settled by then: the others share what is left.
  for (const { uses: fitting, length } of open) {
    const use = fitting.find(({ times }) => times === 0) ?? fitting[0]
    if (use) note(use, length, false)
  }
  let trained = 0
  let unseen = 0
  let twice = 0
  for (const { tokens, total, seen } of uses) {
    trained += tokens
    twice += total - tokens
    if (!seen) unseen += tokens
  }
  const trainerTokens = traces.reduce((sum, trace) => sum + trace.promptIds.length + trace.responseIds.length, 0)
  return { traces: traces.length, trainerTokens, trained, unseen, twice, foreign }
}

/** Trained behind no context that any call saw; one of `uses`, which all sampled this. */
interface Spot {
  readonly uses: readonly Use[]
  readonly length: number
}

function note(use: Use, length: number, seen: boolean): void {
  use.times++
  use.total += length
  use.tokens = Math.max(use.tokens, length)
  use.seen ||= seen
}

/** Notes the uses of one trace whose context is right, adds the others to `open`; returns its tokens of no known call. */
function place(
  { promptIds, responseIds, mask }: TraceTokens,
  byFirst: ReadonlyMap<number, readonly Use[]>,
  open: Spot[],
): number {
  const state = startHash()
  feed(state, promptIds, 0, promptIds.length)
  let hashed = 0
  let foreign = 0
  for (let at = 0; at < responseIds.length; ) {
    if (mask[at] !== 1) {
      at++
      continue
    }
    feed(state, responseIds, hashed, at)
    hashed = at
    const context = { length: promptIds.length + at, hash: hashKey(state) }
    const found = bestUses(byFirst.get(responseIds[at] ?? -1) ?? [], responseIds, mask, at, context)
    if (found === null) {
      foreign++
      at++
      continue
    }
    const { uses, length, seen } = found
    const use = uses.find(({ times }) => times === 0) ?? uses[0]
    if (seen && use) note(use, length, true)
    else open.push({ uses, length })
    at += length
  }
  return foreign
}

/** The calls sampled here: those whose context stands before it, else those that stand here as a whole, of these the longest. */
function bestUses(
  candidates: readonly Use[],
  ids: Int32Array,
  mask: Uint8Array,
  at: number,
  context: Context,
): (Spot & { readonly seen: boolean }) | null {
  let uses: Use[] = []
  let best = { score: -1, length: 0 }
  for (const use of candidates) {
    const length = matching(use.call.sampled, ids, mask, at)
    if (length === 0) continue
    const known = use.call.context
    const seen = known !== null && known.length === context.length && known.hash === context.hash
    const score = (seen ? 2 : 0) + (length === use.call.sampled.length ? 1 : 0)
    if (score < best.score || (score === best.score && length < best.length)) continue
    if (score > best.score || length > best.length) uses = []
    best = { score, length }
    uses.push(use)
  }
  return uses.length === 0 ? null : { uses, length: best.length, seen: best.score >= 2 }
}

/** How many of `sampled` stand here with mask 1: all, or those up to the end of a trace that was cut; else 0. */
function matching(sampled: Int32Array, ids: Int32Array, mask: Uint8Array, at: number): number {
  const length = Math.min(sampled.length, ids.length - at)
  for (let i = 0; i < length; i++) if (ids[at + i] !== sampled[i] || mask[at + i] !== 1) return 0
  return length
}

/** What traces alone tell: tokens trained, and those trained again behind the very same context. */
export function repeatsOf(
  traces: readonly TraceTokens[],
): Pick<Placement, 'traces' | 'trainerTokens' | 'trained' | 'twice'> {
  const known = new Set<string>()
  let marked = 0
  let twice = 0
  for (const { promptIds, responseIds, mask } of traces) {
    const state: RollingHash = startHash()
    feed(state, promptIds, 0, promptIds.length)
    for (let at = 0; at < responseIds.length; ) {
      let end = at
      while (end < responseIds.length && mask[end] === mask[at]) end++
      feed(state, responseIds, at, end)
      if (mask[at] === 1) {
        marked += end - at
        const key = `${promptIds.length + end} ${hashKey(state)}`
        if (known.has(key)) twice += end - at
        else known.add(key)
      }
      at = end
    }
  }
  const trainerTokens = traces.reduce((sum, trace) => sum + trace.promptIds.length + trace.responseIds.length, 0)
  return { traces: traces.length, trainerTokens, trained: marked - twice, twice }
}
