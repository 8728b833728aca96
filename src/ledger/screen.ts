// First step of the ledger: which calls can take part in joining at all, and under which reason the others are set aside.
// Aborted, id-less, unusable and empty calls leave here; undelivered ones only after the retries are settled (retries.ts),
// since a later prompt may prove that they arrived.

import type { LoggedRecord, SessionLedger } from '../domain/completion.js'
import { UNKNOWN_LOGPROB } from '../domain/completion.js'
import { RolloutError } from '../domain/errors.js'
import type { SetAsideReason } from '../domain/trajectory.js'
import { hashOf } from './token-hash.js'
import type { TokenPath } from './token-tree.js'
import { type Seen, viewLedger } from './view.js'

/** A call with ids and logprobs: it may be joined and trained. */
export interface Call extends Seen {
  readonly prompt: TokenPath
  /** Never empty. */
  readonly sampled: Int32Array
  /** Same length as `sampled`, all finite. */
  readonly logprobs: Float32Array
  readonly side: boolean
  /** Place in the order by start time, then content: what decides between equals. Does not depend on arrival. */
  readonly rank: number
}

export interface SetAside {
  readonly seen: Seen
  readonly reason: SetAsideReason
  /** Sampled tokens. */
  readonly tokens: number
}

export interface Screened {
  /** In rank order. */
  readonly calls: readonly Call[]
  readonly setAside: readonly SetAside[]
  /** Every call, in the ledger's order. */
  readonly seen: readonly Seen[]
  /** Those that have prompt ids, by start time, whatever became of them: prompts are evidence of what was delivered. */
  readonly observed: readonly Observed[]
  /** Tokens sampled in the session, those of failed calls included. */
  readonly sampledTokens: number
}

export interface Observed extends Seen {
  readonly prompt: TokenPath
}

/**
 * Sorts the calls of `ledger` into usable ones and set-aside ones. O(tokens).
 * Throws INTERNAL_BUG when a call belongs to another session.
 */
export function screen(ledger: SessionLedger): Screened {
  const setAside: SetAside[] = []
  const usable: { readonly call: Omit<Call, 'rank'> & { rank: number }; readonly hash: number }[] = []
  const all = viewLedger(ledger)
  let sampledTokens = ledger.failed.reduce((sum, failed) => sum + failed.abortedTokens, 0)
  for (const seen of all) {
    const { record, delivered, prompt, messages, tools } = seen
    if (record.sessionId !== ledger.sessionId)
      throw new RolloutError('INTERNAL_BUG', `call ${record.completionId} is of another session`, {
        details: { wanted: ledger.sessionId, got: record.sessionId },
      })
    const tokens = tokensOf(record)
    sampledTokens += tokens
    const reason = unusable(record, prompt !== null)
    const { sampledIds: sampled, logprobs } = record
    if (reason !== null) setAside.push({ seen, reason, tokens })
    else if (prompt && sampled && logprobs && tokens > 0) {
      const side = record.sideRule !== null
      const call = { record, delivered, prompt, messages, tools, sampled, logprobs, side, rank: 0 }
      usable.push({ call, hash: hashOf(sampled) })
    }
  }
  usable.sort(
    (left, right) =>
      left.call.record.startedAtMs - right.call.record.startedAtMs ||
      left.call.prompt.length - right.call.prompt.length ||
      left.hash - right.hash ||
      compareText(left.call.record.completionId, right.call.record.completionId),
  )
  usable.forEach(({ call }, rank) => {
    call.rank = rank
  })
  return {
    calls: usable.map(({ call }) => call),
    setAside,
    seen: all,
    observed: all
      .filter((seen): seen is Observed => seen.prompt !== null)
      .sort(
        ({ record: left }, { record: right }) =>
          left.startedAtMs - right.startedAtMs || compareText(left.completionId, right.completionId),
      ),
    sampledTokens,
  }
}

/** Tokens a call sampled: its ids where they are known, else what usage says. */
export const tokensOf = (record: LoggedRecord): number => record.sampledIds?.length ?? record.completionTokens

/** Why a record cannot be joined or trained; null = it can (or it is empty). */
export function unusable(record: LoggedRecord, hasPrompt: boolean): SetAsideReason | null {
  if (isUnfinished(record)) return 'aborted'
  if (!hasPrompt || record.sampledIds === null) return 'no_token_ids'
  if (record.sampledIds.length === 0) return null
  if (record.notTrainable !== null || !validLogprobs(record)) return 'filtered'
  return null
}

/** The answer broke off: the client left or the engine failed. */
export const isUnfinished = ({ finish }: LoggedRecord): boolean => finish === 'abort' || finish === 'error'

/** One finite, known logprob for each sampled id. */
export function validLogprobs({ logprobs, sampledIds }: LoggedRecord): boolean {
  if (logprobs === null || logprobs.length !== sampledIds?.length) return false
  for (const value of logprobs) if (!Number.isFinite(value) || value <= UNKNOWN_LOGPROB) return false
  return true
}

const compareText = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0)
