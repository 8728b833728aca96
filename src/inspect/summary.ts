// The head of an inspection: the same rows for the text form and the page. Pure.

import type { Check } from './checks.js'
import { count, countsText, duration, measured, plural, rewardText, textField } from './format.js'
import type { SavedLedger, SavedResult, SavedTrace } from './read.js'

export interface Row {
  readonly name: string
  readonly text: string
  readonly tone?: 'good' | 'bad'
}

/** What the session was and how it ended. */
export function sessionRows(result: SavedResult): readonly Row[] {
  const { metadata } = result.trajectory
  const agent = metadata.agent_result
  const evaluation = metadata.evaluation
  const rows: Row[] = [
    {
      name: 'status',
      text: withNote(result.status, result.error),
      tone: result.status === 'COMPLETED' ? 'good' : 'bad',
    },
    {
      name: 'reward',
      text: `${rewardText(outcomeReward(result))}${evaluation ? ` by ${textField(evaluation, 'strategy') ?? '?'}` : ', not graded'}`,
    },
    {
      name: 'model',
      text: [metadata.model_requested, metadata.model_used, metadata.api_type].filter(Boolean).join(' · '),
    },
    { name: 'builder', text: metadata.builder ?? '?' },
  ]
  if (agent) {
    const code = textField(agent, 'return_code')
    const version = textField(agent, 'harness_version')
    const parts = [textField(agent, 'status') ?? '?', code && `exit code ${code}`, version && `version ${version}`]
    rows.push({ name: 'agent', text: withNote(parts.filter(Boolean).join(', '), textField(agent, 'error')) })
  }
  const failure = textField(result.metadata, 'failure_class')
  if (failure) rows.push({ name: 'failure', text: failure, tone: 'bad' })
  const truncated = textField(result.metadata, 'truncated')
  if (truncated) rows.push({ name: 'truncated', text: `by ${truncated}` })
  return rows
}

const withNote = (text: string, note: string | null): string => (note ? `${text}: ${note}` : text)

/** The outcome reward; where the evaluator gave none, the first trace's. */
export function outcomeReward({ trajectory }: SavedResult): number | null {
  const value = trajectory.metadata.evaluation?.['outcome_reward']
  return typeof value === 'number' ? value : (trajectory.traces[0]?.reward ?? null)
}

/** The token ledger in words. */
export function ledgerRows(ledger: SavedLedger): readonly Row[] {
  const { tokens } = ledger
  const setAside = Object.values(tokens.set_aside).reduce((sum, n) => sum + n, 0)
  const reasons = setAside > 0 ? ` (${countsText(tokens.set_aside)})` : ''
  return [
    {
      name: 'calls',
      text: `${count(ledger.calls)}${ledger.failed_calls > 0 ? `, ${count(ledger.failed_calls)} failed` : ''}`,
    },
    {
      name: 'tokens',
      text: `${count(tokens.sampled)} sampled = ${count(tokens.trained)} trained + ${count(setAside)} set aside${reasons}`,
    },
    ...(Object.keys(ledger.not_trainable).length > 0
      ? [{ name: 'not trainable', text: `tokens: ${countsText(ledger.not_trainable)}` }]
      : []),
    { name: 'joins', text: countsText(ledger.joins) },
    { name: 'breaks', text: countsText(ledger.breaks) },
    { name: 'rules', text: countsText(ledger.rules) },
    { name: 'side calls', text: countsText(ledger.side_calls) },
  ]
}

/** What other ways of merging would have given of the same capture. */
export function alternativeRows(ledger: SavedLedger): readonly Row[] {
  const rows: Row[] = Object.entries(ledger.alternatives).map(([name, figures]) => ({
    name,
    text:
      `${plural(figures.traces, 'trace')}, ${count(figures.trainer_tokens)} tokens to the trainer` +
      (figures.context_ids_differing ? `, ${count(figures.context_ids_differing)} context ids differ` : ''),
  }))
  if (ledger.per_request)
    rows.push({
      name: 'per_request',
      text: `${plural(ledger.per_request.traces, 'trace')}, ${count(ledger.per_request.trainer_tokens)} tokens to the trainer`,
    })
  const { reference } = ledger
  if (reference)
    rows.push({
      name: 'reference rule',
      text:
        `${plural(reference.traces, 'trace')}, ${count(reference.kept_tokens)} sampled tokens kept` +
        `, ${count(reference.lost_tokens)} lost, ${count(reference.misplaced_tokens)} behind a context the model never saw`,
    })
  return rows
}

export const timingRows = (result: SavedResult): readonly Row[] =>
  measured(result.timing).map(([name, ms]) => ({ name, text: duration(ms) }))

export const checkRows = (checks: readonly Check[]): readonly Row[] =>
  checks.map(({ name, ok, detail }) => ({
    name,
    text: `${ok ? '✓' : '✗ does not hold:'} ${detail}`,
    tone: ok ? 'good' : 'bad',
  }))

/** One line about a trace. */
export function traceTitle(trace: SavedTrace, trained: number): string {
  const { metadata } = trace
  const who = metadata.agent_id ? `${metadata.agent ?? 'agent'} ${metadata.agent_id}` : (metadata.agent ?? 'main')
  const filter = metadata.training_filter
  return [
    who,
    plural(metadata.completion_metadata.length || 1, 'call'),
    `${count(trace.prompt_ids.length)} prompt + ${count(trace.response_ids.length)} response tokens`,
    `${count(trained)} trained`,
    `reward ${rewardText(trace.reward)}`,
    trace.finish_reason && `finish ${trace.finish_reason}`,
    metadata.break_reason && `starts at a break: ${metadata.break_reason}`,
    filter && `${filter.masked ? 'masked' : 'filtered'}: ${filter.reason ?? '?'}`,
  ]
    .filter(Boolean)
    .join(' · ')
}
