// First step of the ledger: which calls can take part in joining at all, and under which reason the others are set aside.
// Aborted, id-less, unusable and empty calls leave here; undelivered ones only after the retries are settled (retries.ts),
// since a later prompt may prove that they arrived.

import type { CompletionRecord, Delivered, LedgerCall, SessionLedger } from '../domain/completion.js'
import { UNKNOWN_LOGPROB } from '../domain/completion.js'
import { RolloutError } from '../domain/errors.js'
import type { SetAsideReason } from '../domain/trajectory.js'
import { hashOf } from './token-hash.js'

/** A call with ids and logprobs: it may be joined and trained. */
export interface Call {
  readonly record: CompletionRecord
  readonly delivered: Delivered
  readonly prompt: Int32Array
  /** Never empty. */
  readonly sampled: Int32Array
  /** Same length as `sampled`, all finite. */
  readonly logprobs: Float32Array
  readonly side: boolean
  /** Place in the order by start time, then content: what decides between equals. Does not depend on arrival. */
  readonly rank: number
}

export interface SetAside {
  readonly record: CompletionRecord
  readonly reason: SetAsideReason
  /** Sampled tokens. */
  readonly tokens: number
}

export interface Screened {
  /** In rank order. */
  readonly calls: readonly Call[]
  readonly setAside: readonly SetAside[]
  /** Every record that has prompt ids, whatever became of it: prompts are evidence of what was delivered. */
  readonly observed: readonly CompletionRecord[]
  /** Tokens sampled in the session, those of failed calls included. */
  readonly sampledTokens: number
}

/**
 * Sorts the calls of `ledger` into usable ones and set-aside ones. O(tokens).
 * Throws INTERNAL_BUG when a call belongs to another session.
 */
export function screen(ledger: SessionLedger): Screened {
  const setAside: SetAside[] = []
  const usable: { call: LedgerCall; prompt: Int32Array; sampled: Int32Array; logprobs: Float32Array }[] = []
  let sampledTokens = ledger.failed.reduce((sum, failed) => sum + failed.abortedTokens, 0)
  for (const call of ledger.calls) {
    const { record } = call
    if (record.sessionId !== ledger.sessionId)
      throw new RolloutError('INTERNAL_BUG', `call ${record.completionId} is of another session`, {
        details: { wanted: ledger.sessionId, got: record.sessionId },
      })
    const tokens = tokensOf(record)
    sampledTokens += tokens
    const reason = unusable(record)
    if (reason !== null) setAside.push({ record, reason, tokens })
    else if (record.promptIds && record.sampledIds && record.logprobs && tokens > 0)
      usable.push({ call, prompt: record.promptIds, sampled: record.sampledIds, logprobs: record.logprobs })
  }
  const order = new Map(usable.map(({ call, sampled }) => [call, { sampled: hashOf(sampled) }]))
  usable.sort(
    (left, right) =>
      left.call.record.startedAtMs - right.call.record.startedAtMs ||
      left.prompt.length - right.prompt.length ||
      (order.get(left.call)?.sampled ?? 0) - (order.get(right.call)?.sampled ?? 0) ||
      compareText(left.call.record.completionId, right.call.record.completionId),
  )
  return {
    calls: usable.map(({ call, prompt, sampled, logprobs }, rank) => ({
      record: call.record,
      delivered: call.delivered,
      prompt,
      sampled,
      logprobs,
      side: call.record.sideRule !== null,
      rank,
    })),
    setAside,
    observed: ledger.calls.map(call => call.record).filter(record => record.promptIds !== null),
    sampledTokens,
  }
}

/** Tokens a call sampled: its ids where they are known, else what usage says. */
export const tokensOf = (record: CompletionRecord): number => record.sampledIds?.length ?? record.completionTokens

/** Why a record cannot be joined or trained; null = it can (or it is empty). */
export function unusable(record: CompletionRecord): SetAsideReason | null {
  if (isUnfinished(record)) return 'aborted'
  if (record.promptIds === null || record.sampledIds === null) return 'no_token_ids'
  if (record.sampledIds.length === 0) return null
  if (record.notTrainable !== null || !validLogprobs(record)) return 'filtered'
  return null
}

/** The answer broke off: the client left or the engine failed. */
export const isUnfinished = ({ finish }: CompletionRecord): boolean => finish === 'abort' || finish === 'error'

/** One finite, known logprob for each sampled id. */
export function validLogprobs({ logprobs, sampledIds }: CompletionRecord): boolean {
  if (logprobs === null || logprobs.length !== sampledIds?.length) return false
  for (const value of logprobs) if (!Number.isFinite(value) || value <= UNKNOWN_LOGPROB) return false
  return true
}

const compareText = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0)
