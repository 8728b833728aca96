// A result as a person reads it on a terminal: turns, tool calls, sampled tokens coloured by loss mask. Pure: returns text.
// Control characters in what a model or a tool wrote are made visible, so that a trace cannot drive the terminal.

import { checkResult } from './checks.js'
import { createColors } from './colors.js'
import { count } from './format.js'
import type { SavedResult, SavedTrace } from './read.js'
import { alternativeRows, checkRows, ledgerRows, type Row, sessionRows, timingRows, traceTitle } from './summary.js'
import { joinText, turnTitle } from './turn-title.js'
import { type ShownMessage, type ShownToken, showTrace, type TokenPieces } from './turns.js'
import { visible } from './visible.js'

export interface TextOptions {
  readonly pieces: TokenPieces
  readonly colour: boolean
  /** Show messages in full; else long ones are cut, and it is said how much is left out. */
  readonly full: boolean
  /** Only this trace, from 1; null = all. */
  readonly trace: number | null
}

/** Lines and characters of a context message that are shown without `full`. */
const SHORT_LINES = 12
const SHORT_CHARACTERS = 1200

export function resultText(result: SavedResult, options: TextOptions): string {
  const paint = createColors(options.colour)
  const lines: string[] = [paint.bold(`session ${visible(result.session_id)} of task ${visible(result.task_id)}`)]
  const section = (title: string, rows: readonly Row[]) => {
    if (rows.length === 0) return
    lines.push('', paint.bold(title))
    const width = Math.max(...rows.map(row => row.name.length))
    for (const { name, text, tone } of rows) {
      const mark = tone === 'bad' ? paint.red : tone === 'good' ? paint.green : (value: string) => value
      lines.push(`  ${paint.dim(name.padEnd(width))}  ${mark(visible(text))}`)
    }
  }
  const { ledger } = result.trajectory.metadata
  section('session', sessionRows(result))
  if (ledger) section('tokens', ledgerRows(ledger))
  if (ledger) section('other ways of merging', alternativeRows(ledger))
  section('checked on this file', checkRows(checkResult(result)))
  section('timings', timingRows(result))
  lines.push(
    '',
    `colours: ${paint.green('sampled, trained (mask 1)')}  ${paint.yellow('sampled, not trained here (mask 0)')}  ${paint.dim('context (mask 0)')}`,
  )
  result.trajectory.traces.forEach((trace, i) => {
    if (options.trace === null || options.trace === i + 1) lines.push('', ...traceLines(trace, i, result, options))
  })
  if (result.trajectory.traces.length === 0) lines.push('', 'no traces')
  return `${lines.join('\n')}\n`
}

function traceLines(trace: SavedTrace, index: number, result: SavedResult, options: TextOptions): string[] {
  const paint = createColors(options.colour)
  const shown = showTrace(trace, options.pieces)
  const of = result.trajectory.traces.length
  const lines = [paint.bold(`trace ${index + 1} of ${of}`), `  ${visible(traceTitle(trace, shown.trained))}`]
  if (!shown.textKnown)
    lines.push(
      paint.yellow('  the text of the ids is not known here: --tokenizer names the folder of the model’s tokenizer'),
    )
  lines.push('', `  ${paint.bold('prompt')} ${paint.dim(`${count(shown.promptIds.length)} tokens, mask 0`)}`)
  for (const message of shown.prompt) lines.push(...messageLines(message, options))
  shown.turns.forEach((turn, number) => {
    lines.push(
      '',
      `  ${paint.bold(`turn ${number + 1}`)} ${paint.dim(visible(`${joinText(turn)} · ${turnTitle(turn)}`))}`,
    )
    for (const message of turn.context) lines.push(...messageLines(message, options))
    lines.push(...tokenLines(turn.tokens, options))
    for (const call of turn.answer?.calls ?? [])
      lines.push(`    ${paint.cyan(`→ ${visible(call.name)}`)} ${cut(call.arguments, options).join(' ')}`)
  })
  return lines
}

function messageLines(message: ShownMessage, options: TextOptions): string[] {
  const paint = createColors(options.colour)
  const parts = [
    ...(message.reasoning ? [`(thinking) ${message.reasoning}`] : []),
    ...(message.text ? [message.text] : []),
    ...message.calls.map(call => `→ ${call.name} ${call.arguments}`),
  ]
  const lines = cut(parts.join('\n') || '(empty)', options)
  return lines.map((line, i) => `    ${paint.dim(`${(i === 0 ? message.role : '').padEnd(10)} ${line}`)}`)
}

function cut(text: string, { full }: TextOptions): string[] {
  const lines = visible(text).split('\n')
  if (full) return lines
  const short = lines.slice(0, SHORT_LINES).join('\n').slice(0, SHORT_CHARACTERS)
  const left = visible(text).length - short.length
  return [...short.split('\n'), ...(left > 0 ? [`… ${count(left)} characters more (--full shows them)`] : [])]
}

/** Runs of equal mask in one colour; every line gets its own, so that pagers keep it. */
function tokenLines(tokens: readonly ShownToken[], options: TextOptions): string[] {
  const paint = createColors(options.colour)
  let text = ''
  for (let at = 0; at < tokens.length; ) {
    const trained = tokens[at]?.trained ?? false
    let run = ''
    for (; at < tokens.length && tokens[at]?.trained === trained; at++) run += tokens[at]?.text ?? ''
    const colour = trained ? paint.green : paint.yellow
    text += visible(run)
      .split('\n')
      .map(line => (line === '' ? '' : colour(line)))
      .join('\n')
  }
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map(line => `    ${paint.dim('│')} ${line}`)
}
