// A result as one self-contained HTML page: no script, no outside asset, light and dark. Everything that comes from the
// result goes through `escapeHtml`. Each sampled token is an element with its id and logprob, coloured by loss mask. Pure.

import { checkResult } from './checks.js'
import { count, duration, measured, rewardText } from './format.js'
import { PAGE_STYLE } from './page-style.js'
import type { SavedResult, SavedTrace } from './read.js'
import { alternativeRows, checkRows, ledgerRows, outcomeReward, type Row, sessionRows, traceTitle } from './summary.js'
import { turnTitle } from './turn-title.js'
import { type ShownMessage, type ShownToken, showTrace, type TokenPieces, type Turn } from './turns.js'
import { visible } from './visible.js'

/** Characters of a context message that are shown before it is folded. */
const FOLD_CHARACTERS = 600

export function resultPage(result: SavedResult, pieces: TokenPieces): string {
  const { traces, metadata } = result.trajectory
  const { ledger } = metadata
  const checks = checkResult(result)
  const sound = checks.every(check => check.ok)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(result.task_id)} · ${escapeHtml(result.session_id)}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<header>
<p class="kicker">session of task <b>${escapeHtml(result.task_id)}</b></p>
<h1>${escapeHtml(result.session_id)}</h1>
<p class="chips">${chip(result.status, result.status === 'COMPLETED' ? 'good' : 'bad')}${chip(`reward ${rewardText(outcomeReward(result))}`, '')}${chip(sound ? 'the accounts add up' : 'the accounts do not add up', sound ? 'good' : 'bad')}${ledger ? chip(`${count(ledger.tokens.trained)} of ${count(ledger.tokens.sampled)} sampled tokens trained`, '') : ''}</p>
</header>
<main>
${ledger ? accountBar(ledger.tokens.trained, ledger.tokens.set_aside) : ''}
<div class="cards">
${card('Session', sessionRows(result))}
${ledger ? card('Tokens', ledgerRows(ledger)) : ''}
${ledger ? card('Other ways of merging', alternativeRows(ledger)) : ''}
${card('Checked on this file', checkRows(checks))}
${timingCard(result)}
</div>
<p class="legend"><span class="token t2">sampled, trained</span> <span class="token off">sampled, not trained here</span> <span class="context-key">context, mask 0</span> <span>stronger green = more surprising to the policy; hold the pointer over a token for its id and logprob</span></p>
${traces.length === 0 ? '<p>No traces.</p>' : traces.map((trace, i) => traceSection(trace, i, traces.length, pieces)).join('\n')}
</main>
</body>
</html>
`
}

/** Text for HTML, in content and in quoted attributes. */
export const escapeHtml = (text: string): string =>
  visible(text).replace(/[&<>"']/g, char => `&#${char.charCodeAt(0)};`)

const chip = (text: string, tone: string): string => `<span class="chip ${tone}">${escapeHtml(text)}</span>`

function card(title: string, rows: readonly Row[]): string {
  if (rows.length === 0) return ''
  const lines = rows.map(
    ({ name, text, tone }) => `<dt>${escapeHtml(name)}</dt><dd class="${tone ?? ''}">${escapeHtml(text)}</dd>`,
  )
  return `<section class="card"><h2>${escapeHtml(title)}</h2><dl>${lines.join('')}</dl></section>`
}

function accountBar(trained: number, setAside: Readonly<Record<string, number>>): string {
  const parts = [['trained', trained] as const, ...Object.entries(setAside)].filter(([, tokens]) => tokens > 0)
  const total = parts.reduce((sum, [, tokens]) => sum + tokens, 0)
  if (total === 0) return ''
  const label = (name: string, tokens: number) => `${name} ${count(tokens)}`
  const bars = parts.map(
    ([name, tokens], i) =>
      `<span class="${i === 0 && name === 'trained' ? 'kept' : 'aside'}" style="flex-grow:${tokens}" title="${escapeHtml(label(name, tokens))}"></span>`,
  )
  const words = parts.map(([name, tokens]) => escapeHtml(label(name, tokens))).join(' · ')
  return `<figure class="account"><div class="bar">${bars.join('')}</div><figcaption>${count(total)} sampled tokens: ${words}</figcaption></figure>`
}

function timingCard(result: SavedResult): string {
  const rows = measured(result.timing)
  if (rows.length === 0) return ''
  const longest = Math.max(...rows.map(([, ms]) => ms))
  const lines = rows.map(
    ([name, ms]) =>
      `<dt>${escapeHtml(name)}</dt><dd class="time"><span style="width:${((60 * ms) / longest).toFixed(1)}%"></span><i>${escapeHtml(duration(ms))}</i></dd>`,
  )
  return `<section class="card"><h2>Timings</h2><dl>${lines.join('')}</dl></section>`
}

function traceSection(trace: SavedTrace, index: number, of: number, pieces: TokenPieces): string {
  const shown = showTrace(trace, pieces)
  const unknown = shown.textKnown
    ? ''
    : '<p class="warn">The text of the ids is not known here: the tokenizer is not the model’s.</p>'
  return `<section class="trace" id="trace-${index + 1}">
<h2>Trace ${index + 1} of ${of}</h2>
<p class="sub">${escapeHtml(traceTitle(trace, shown.trained))}</p>
${unknown}
<article class="turn"><h3>Prompt <small>${count(shown.promptIds.length)} tokens, mask 0</small></h3>
${shown.prompt.map(messageBlock).join('\n')}
${foldedIds('token ids of the prompt', shown.promptIds)}</article>
${shown.turns.map((turn, i) => turnBlock(turn, i)).join('\n')}
</section>`
}

function turnBlock(turn: Turn, index: number): string {
  const calls = (turn.answer?.calls ?? []).map(
    call => `<p class="call"><b>${escapeHtml(call.name)}</b> <code>${escapeHtml(call.arguments)}</code></p>`,
  )
  const join = turn.call.join
  return `<article class="turn"><h3>Turn ${index + 1}${join ? ` <span class="join ${escapeHtml(join)}">join ${escapeHtml(join)}</span>` : ''} <small>${escapeHtml(turnTitle(turn))}</small></h3>
${turn.context.map(messageBlock).join('\n')}
${foldedIds('token ids between the answers', turn.contextIds)}
<pre class="answer">${turn.tokens.map(tokenSpan).join('')}</pre>
${calls.join('\n')}</article>`
}

function messageBlock(message: ShownMessage): string {
  const thinking = message.reasoning ? `<p class="thinking">${escapeHtml(message.reasoning)}</p>` : ''
  const calls = message.calls.map(call => `→ ${call.name} ${call.arguments}`).join('\n')
  const text = [message.text, calls].filter(part => part !== '').join('\n') || '(empty)'
  const body =
    text.length <= FOLD_CHARACTERS
      ? `<pre>${escapeHtml(text)}</pre>`
      : `<details><summary><span class="pre">${escapeHtml(text.slice(0, FOLD_CHARACTERS))}…</span><span class="more">all ${count(text.length)} characters</span></summary><pre>${escapeHtml(text)}</pre></details>`
  return `<div class="message"><span class="role">${escapeHtml(message.role)}</span><div>${thinking}${body}</div></div>`
}

const foldedIds = (title: string, ids: readonly number[]): string =>
  ids.length === 0
    ? ''
    : `<details class="ids"><summary>${escapeHtml(title)} (${count(ids.length)})</summary><p>${ids.join(' ')}</p></details>`

/** Four steps of surprise by probability: over 90 %, over 50 %, over 10 %, less. */
function tone({ trained, logprob }: ShownToken): string {
  if (!trained) return 'off'
  const probability = Math.exp(logprob ?? 0)
  return probability > 0.9 ? 't1' : probability > 0.5 ? 't2' : probability > 0.1 ? 't3' : 't4'
}

function tokenSpan(token: ShownToken): string {
  const odds =
    token.logprob === null
      ? 'not trained'
      : `logprob ${token.logprob.toFixed(3)}, p ${(100 * Math.exp(token.logprob)).toFixed(1)} %`
  const text = token.text === '' ? '·' : token.text
  // A line feed alone would be a token nobody can see or point at.
  const shown = escapeHtml(text).replaceAll('\n', '<i class="feed">↵</i>\n')
  return `<span class="token ${tone(token)}" title="${token.id} · ${odds}">${shown}</span>`
}
