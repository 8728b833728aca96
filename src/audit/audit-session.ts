// One session of a capture: its calls under every join rule, and its own traces against its calls. Pure; the text of ids is asked for.

import type { SessionLedger } from '../domain/completion.js'
import { isObject, type JsonObject } from '../domain/json.js'
import type { JoinSetting, Trajectory } from '../domain/trajectory.js'
import { type DecodeIds, withTexts } from '../ledger/decode.js'
import { type LedgerSettings, type Reconstruction, reconstruct } from '../ledger/reconstruct.js'
import { type SessionLog, sealLog } from '../ledger/session-log.js'
import { feed, hashKey, hashOf, startHash } from '../ledger/token-hash.js'
import { idsOf } from '../ledger/token-tree.js'
import { mergedTrajectory } from '../ledger/trajectory.js'
import { viewLedger } from '../ledger/view.js'
import type { RuleFigures, SessionAudit } from './figures.js'
import { type Context, type PlacedCall, placementOf } from './placement.js'
import type { SavedSession } from './saved-result.js'
import { resultOnly, type ToldLedger, toldLedger } from './told-ledger.js'

export interface AuditSettings {
  readonly decode: DecodeIds
  /** End-of-turn id; null = told from the answers. */
  readonly endTokenId: number | null
}

export interface AuditInput {
  readonly taskId: string
  readonly sessionId: string
  readonly source: SessionAudit['source']
  readonly log: SessionLog
  readonly saved: SavedSession | null
  readonly notes: readonly string[]
}

export interface AuditedSession {
  readonly audit: SessionAudit
  /** The faithful traces; null where the capture holds no calls. */
  readonly faithful: Trajectory | null
}

export async function auditSession(input: AuditInput, settings: AuditSettings): Promise<AuditedSession> {
  const { taskId, sessionId, source, log, saved } = input
  const told = toldLedger(saved)
  const base = {
    taskId,
    sessionId,
    status: saved?.status ?? null,
    source,
    builder: typeof saved?.trajectory['builder'] === 'string' ? saved.trajectory['builder'] : null,
  }
  const notes = [...input.notes]
  if (log.calls.length === 0) return { audit: { ...base, ...resultOnly(saved, told, notes) }, faithful: null }

  const ledger = sealLog(log)
  const contexts = contextsOf(ledger)
  const identity = { builder: 'prefix_merging', sessionId, taskId, taskMetadata: taskMetadataOf(saved) }
  const build = async (join: JoinSetting, endOfTurnTokenId: number | null) => {
    const wanted: LedgerSettings = { join, trainSideCalls: false, keepRetries: false, endOfTurnTokenId }
    const made = await withTexts(reconstruct(ledger, wanted), settings.decode)
    return { made, trajectory: mergedTrajectory(ledger, made, identity, null) }
  }
  const faithful = await build('faithful', settings.endTokenId)
  const lenient = await build('lenient', settings.endTokenId)
  const byPrompt = await build('prompt_prefix', settings.endTokenId ?? endTokenOf(log))
  // Calls that a result counts and does not show (no ids, failed): sampled all the same.
  const hidden = source === 'traces' ? Math.max(0, (told?.sampled ?? 0) - faithful.made.sampledTokens) : 0
  const sampled = faithful.made.sampledTokens + hidden
  if (hidden > 0) notes.push(`${hidden} sampled tokens are in none of its traces`)
  const built = (of: { trajectory: Trajectory }) => builtFigures(of.trajectory, contexts, sampled, hidden)
  const counts = faithful.trajectory.ledger
  const exported = saved && exportedFigures(saved, told, ledger, contexts, sampled)
  const audit: SessionAudit = {
    ...base,
    calls: log.calls.length,
    sampled,
    rules: {
      ...(exported && { exported }),
      reference: referenceFigures(faithful.made, sampled),
      per_request: perRequestFigures(faithful.made, counts.perRequest, sampled, hidden),
      prompt_prefix: built(byPrompt),
      lenient: built(lenient),
      faithful: built(faithful),
    },
    setAside: { ...(counts.tokens.setAside as Record<string, number>), ...(hidden > 0 && { not_in_capture: hidden }) },
    joins: counts.joins as Record<string, number>,
    breaks: counts.breaks as Record<string, number>,
    notes,
  }
  return { audit, faithful: faithful.trajectory }
}

/** Length and hash of what each call saw; a prompt is put together only to be hashed. */
function contextsOf(ledger: SessionLedger): Map<string, Context> {
  const contexts = new Map<string, Context>()
  for (const { record, prompt } of viewLedger(ledger))
    if (prompt !== null) contexts.set(record.completionId, { length: prompt.length, hash: hashOf(idsOf(prompt)) })
  return contexts
}

/** The last id of most answers that ended by themselves; null = there is no such id. */
function endTokenOf({ calls }: SessionLog): number | null {
  const last = calls.flatMap(({ record: { finish, sampledIds } }) =>
    (finish === 'stop' || finish === 'tool_calls') && sampledIds?.length ? [sampledIds.at(-1) ?? -1] : [],
  )
  const counts = new Map<number, number>()
  for (const id of last) counts.set(id, (counts.get(id) ?? 0) + 1)
  const [most] = [...counts].sort((left, right) => right[1] - left[1])
  return most && most[1] * 2 > last.length ? most[0] : null
}

function builtFigures(
  { traces, ledger }: Trajectory,
  contexts: ReadonlyMap<string, Context>,
  sampled: number,
  hidden: number,
): RuleFigures {
  const trainedBy = new Map<string, number>()
  let total = 0
  let unseen = 0
  let otherIds = 0
  for (const trace of traces) {
    const state = startHash()
    feed(state, trace.promptIds, 0, trace.promptIds.length)
    let hashed = 0
    let sameText = true
    for (const call of trace.calls) {
      sameText &&= call.join !== 'rewritten'
      feed(state, trace.responseIds, hashed, call.start)
      hashed = call.start
      if (!call.trained) continue
      const tokens = call.end - call.start
      total += tokens
      trainedBy.set(call.completionId, Math.max(trainedBy.get(call.completionId) ?? 0, tokens))
      const context = contexts.get(call.completionId)
      const seen = context?.length === trace.promptIds.length + call.start && context.hash === hashKey(state)
      if (!seen && sameText) otherIds += tokens
      else if (!seen) unseen += tokens
    }
  }
  const trained = [...trainedBy.values()].reduce((sum, tokens) => sum + tokens, 0)
  return {
    traces: traces.length,
    trainerTokens: traces.reduce((sum, trace) => sum + trace.promptIds.length + trace.responseIds.length, 0),
    trained,
    ...remainder(sampled, trained, hidden + sumOf(ledger.tokens.setAside)),
    unseen,
    otherIds,
    twice: total - trained,
    foreign: 0,
  }
}

/** What is trained nowhere: set aside under a reason, and the rest. */
const remainder = (sampled: number, trained: number, named: number): Pick<RuleFigures, 'setAside' | 'lost'> => {
  const setAside = Math.min(named, sampled - trained)
  return { setAside, lost: sampled - trained - setAside }
}

const sumOf = (counts: Readonly<Record<string, number | undefined>>): number =>
  Object.values(counts).reduce<number>((sum, tokens) => sum + (tokens ?? 0), 0)

const referenceFigures = ({ reference }: Reconstruction, sampled: number): RuleFigures => ({
  traces: reference.traces,
  trainerTokens: null,
  trained: reference.keptTokens,
  setAside: 0,
  lost: sampled - reference.keptTokens,
  unseen: reference.misplacedTokens,
  otherIds: 0,
  twice: 0,
  foreign: 0,
})

function perRequestFigures(
  { calls, setAside }: Reconstruction,
  { traces, trainerTokens }: { readonly traces: number; readonly trainerTokens: number },
  sampled: number,
  hidden: number,
): RuleFigures {
  const trained = calls.reduce((sum, call) => sum + call.sampled.length, 0)
  const named = setAside.reduce((sum, { tokens }) => sum + tokens, hidden)
  return {
    traces,
    trainerTokens,
    trained,
    ...remainder(sampled, trained, named),
    unseen: 0,
    otherIds: 0,
    twice: 0,
    foreign: 0,
  }
}

/** The capture's own traces against its calls. */
function exportedFigures(
  { traces }: SavedSession,
  told: ToldLedger | null,
  { calls }: SessionLedger,
  contexts: ReadonlyMap<string, Context>,
  sampled: number,
): RuleFigures {
  const placed = calls.flatMap(({ record: { completionId: id, sampledIds } }): PlacedCall[] =>
    sampledIds?.length ? [{ id, sampled: sampledIds, context: contexts.get(id) ?? null }] : [],
  )
  const placement = placementOf(traces, placed)
  return { ...placement, ...remainder(sampled, placement.trained, sumOf(told?.setAside ?? {})), otherIds: 0 }
}

const taskMetadataOf = (saved: SavedSession | null): JsonObject => {
  const found = saved?.trajectory['task_metadata']
  return isObject(found) ? (found as JsonObject) : {} // decoded JSON
}
