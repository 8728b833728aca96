// A policy that makes the mistakes models make: broken JSON in calls, calls inside a think block that is never closed, repetition
// up to the limit, unknown tools, empty answers. After a few turns it sobers up and ends, so that a harness is not held for ever.

import { choice, type Part, sequence } from '../grammar.js'
import { phrases } from '../prose.js'
import type { Script } from '../script.js'
import { DESCRIPTIONS, type ShellTool, shellCall } from '../tools.js'

const SOBER_AFTER = 6

/** The whole answer but the end token; `thinking` says whether the prompt leaves the think block to the policy. */
export function drunkAnswer({ conversation, shell }: Parameters<Script>[0], thinking: boolean): Part {
  const think = (closed: boolean): Part =>
    thinking ? sequence('<think>\n', THOUGHT, closed ? '.\n' : '.\n\n', closed ? '</think>' : '') : ''
  const start = sequence(think(true), thinking ? '\n\n' : '')
  if (conversation.assistantTurns >= SOBER_AFTER) return sequence(start, FAREWELL, '.')
  const name = JSON.stringify(shell?.name ?? 'shell')
  const good = shell ? [{ weight: 3, part: sequence(start, goodCall(shell)) }] : []
  return choice([
    ...good,
    // The arguments are never closed.
    { weight: 2, part: sequence(start, `<tool_call>\n{"name": ${name}, "arguments": {"command": "ls"\n</tool_call>`) },
    { weight: 1, part: sequence(start, `<tool_call>\n{name: ${name}, arguments: ls}\n</tool_call>`) },
    {
      weight: 2,
      part: sequence(start, `<tool_call>\n{"name": "does_not_exist", "arguments": {"path": "."}}\n</tool_call>`),
    },
    { weight: 1, part: start },
    ...(thinking && shell ? [{ weight: 2, part: sequence(think(false), goodCall(shell)) }] : []),
    { weight: 1, part: sequence(start, 'Again', { body: choice(REPEATED), end: 0.0005 }, '.') },
  ])
}

const goodCall = (shell: ShellTool): Part => shellCall(shell, choice(COMMANDS), DESCRIPTIONS.look)

const COMMANDS = [
  { weight: 2, part: 'ls' },
  { weight: 1, part: 'cat no such file' },
]
const REPEATED = [
  { weight: 9, part: ' and again' },
  { weight: 1, part: ' and once more' },
]
const THOUGHT = phrases(
  '{Hm|Well}, {what|which thing} was {it|that} {again|}',
  'I {could|might} {try|use} {something|anything} {else|now}',
)
const FAREWELL = phrases('I {have|had} {enough|my fill} of {this|it} {now|today}')
