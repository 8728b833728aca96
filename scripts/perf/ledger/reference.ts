// The reference system's merge rule written straightforwardly, for comparison: every record keeps its whole prompt, every prompt is
// compared with the newest prompt of every chain, the longest one that is a prefix takes it; joints at the first end token.

import type { CompletionRecord } from '../../../src/domain/completion.js'
import { END } from './session.js'

export interface KeptRecord {
  readonly promptIds: Int32Array
  readonly sampledIds: Int32Array
  readonly logprobs: Float32Array
}

export const keep = (record: CompletionRecord): KeptRecord => ({
  promptIds: record.promptIds?.slice() ?? new Int32Array(0),
  sampledIds: record.sampledIds?.slice() ?? new Int32Array(0),
  logprobs: record.logprobs?.slice() ?? new Float32Array(0),
})

interface Chain {
  tip: Int32Array
  readonly records: KeptRecord[]
}

/** Lengths of the traces it makes. */
export function mergeStraightforwardly(records: readonly KeptRecord[]): readonly number[] {
  const chains: Chain[] = []
  for (const record of records) {
    let best: Chain | null = null
    for (const chain of chains)
      if (isPrefix(chain.tip, record.promptIds) && chain.tip.length > (best?.tip.length ?? -1)) best = chain
    if (best) {
      best.records.push(record)
      best.tip = record.promptIds
    } else chains.push({ tip: record.promptIds, records: [record] })
  }
  return chains.map(({ records: [first, ...others] }) => {
    const response = [...(first?.sampledIds ?? [])]
    let length = first?.promptIds.length ?? 0
    for (const { promptIds, sampledIds } of others) {
      const end = promptIds.indexOf(END, length)
      if (end < 0) break
      response.push(...promptIds.slice(end + 1), ...sampledIds)
      length = promptIds.length
    }
    return (first?.promptIds.length ?? 0) + response.length
  })
}

function isPrefix(part: Int32Array, ids: Int32Array): boolean {
  if (part.length > ids.length) return false
  for (let at = 0; at < part.length; at++) if (part[at] !== ids[at]) return false
  return true
}
