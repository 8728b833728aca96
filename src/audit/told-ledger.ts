// What a result says of itself, for sessions whose calls the capture does not hold: the account that ours carry, and repeats among traces.

import { isObject, type JsonObject } from '../domain/json.js'
import type { RuleFigures, SessionAudit } from './figures.js'
import { repeatsOf } from './placement.js'
import type { SavedSession } from './saved-result.js'

/** No calls: what the traces and the result's own account tell. */
export function resultOnly(
  saved: SavedSession | null,
  told: ToldLedger | null,
  notes: string[],
): Omit<SessionAudit, 'taskId' | 'sessionId' | 'status' | 'source' | 'builder'> {
  const stats = saved?.trajectory['reconstruction_stats']
  const { completions_total: all, completions_merged: merged } = isObject(stats) ? stats : {}
  if (typeof all === 'number' && typeof merged === 'number' && all > merged && told === null)
    notes.push(`${all - merged} of ${all} completions are in none of its traces (reconstruction_stats)`)
  notes.push('no completion files: contexts and lost tokens can only be told by the result itself')
  const repeats = saved && repeatsOf(saved.traces)
  const named = Object.values(told?.setAside ?? {}).reduce((sum, tokens) => sum + tokens, 0)
  const setAside = Math.max(0, Math.min(named, (told?.sampled ?? 0) - (repeats?.trained ?? 0)))
  const exported: RuleFigures | null = repeats && {
    ...repeats,
    setAside,
    lost: told === null ? null : told.sampled - repeats.trained - setAside,
    unseen: told === null ? null : (told.unseen ?? null),
    otherIds: 0,
    foreign: 0,
  }
  return {
    calls: told?.calls ?? (typeof all === 'number' ? all : null),
    sampled: told?.sampled ?? null,
    rules: { ...(exported && { exported }), ...told?.rules },
    setAside: told?.setAside ?? {},
    joins: told?.joins ?? {},
    breaks: told?.breaks ?? {},
    notes,
  }
}

export interface ToldLedger {
  readonly calls: number | null
  readonly sampled: number
  /** Trained behind a rewritten history; null = the traces do not say how they were joined. */
  readonly unseen: number | null
  readonly rules: SessionAudit['rules']
  readonly setAside: Readonly<Record<string, number>>
  readonly joins: Readonly<Record<string, number>>
  readonly breaks: Readonly<Record<string, number>>
}

/** The account that a result of ours gives of itself; null = it gives none. */
export function toldLedger(saved: SavedSession | null): ToldLedger | null {
  const ledger = saved?.trajectory['ledger']
  if (!saved || !isObject(ledger)) return null
  const tokens = isObject(ledger['tokens']) ? ledger['tokens'] : {}
  const sampled = tokens['sampled']
  if (typeof sampled !== 'number') return null
  const alternatives = isObject(ledger['alternatives']) ? ledger['alternatives'] : {}
  const rules: Record<string, RuleFigures> = {}
  for (const rule of ['faithful', 'lenient', 'prompt_prefix']) {
    const figures = numbersOf(alternatives[rule])
    const trained = figures['trained_tokens']
    if (trained === undefined) continue
    rules[rule] = {
      traces: figures['traces'] ?? 0,
      trainerTokens: figures['trainer_tokens'] ?? null,
      trained,
      setAside: sampled - trained,
      lost: 0,
      unseen: rule === 'faithful' ? 0 : null,
      otherIds: 0,
      twice: 0,
      foreign: 0,
    }
  }
  const reference = numbersOf(ledger['reference'])
  if (reference['kept_tokens'] !== undefined)
    rules['reference'] = {
      traces: reference['traces'] ?? 0,
      trainerTokens: null,
      trained: reference['kept_tokens'],
      setAside: 0,
      lost: reference['lost_tokens'] ?? null,
      unseen: reference['misplaced_tokens'] ?? null,
      otherIds: 0,
      twice: 0,
      foreign: 0,
    }
  return {
    calls: typeof ledger['calls'] === 'number' ? ledger['calls'] : null,
    sampled,
    unseen: rewrittenIn(saved),
    rules,
    setAside: numbersOf(tokens['set_aside']),
    joins: numbersOf(ledger['joins']),
    breaks: numbersOf(ledger['breaks']),
  }
}

/** Tokens of trained calls that follow a rewritten join in their trace. */
function rewrittenIn({ traces }: SavedSession): number | null {
  let unseen = 0
  for (const { metadata } of traces) {
    const calls = metadata['completion_metadata']
    if (!Array.isArray(calls)) return null
    let rewritten = false
    for (const call of calls as readonly JsonObject[]) {
      rewritten ||= call['join'] === 'rewritten'
      if (rewritten && call['trained'] === true) unseen += Number(call['end']) - Number(call['start'])
    }
  }
  return unseen
}

const numbersOf = (value: unknown): Record<string, number> =>
  isObject(value)
    ? Object.fromEntries(
        Object.entries(value).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
      )
    : {}
