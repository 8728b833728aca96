// The script for requests that name no scenario: look around once or twice, then answer. A sub-agent that is offered a tool to
// report its result with uses it, because its harness counts nothing else as an end.

import type { Reply } from '../answer.js'
import { oneOf } from '../grammar.js'
import { phrase, phrases, prose } from '../prose.js'
import { finish, run, type Script } from '../script.js'
import { instanceOf, plainCall } from '../tools.js'

const REPORTING_TOOLS = ['complete_task', 'submit', 'finish']

export const generic: Script = ({ conversation, shell }) => {
  const worked = conversation.calls.filter(call => call.result !== null).length
  const report = conversation.tools.find(tool => REPORTING_TOOLS.includes(tool.name))
  const end: Reply = report
    ? {
        weight: 1,
        thought: REPORT_THOUGHT,
        say: null,
        calls: [plainCall(report.name, objectOf(instanceOf(report.schema)))],
      }
    : finish(END_THOUGHT, END_SAY)
  if (shell === null || worked >= 2 || conversation.assistantTurns >= 4) return [end]
  const look = run(shell, 'look', {
    thought: LOOK_THOUGHT,
    say: LOOK_SAY,
    command: oneOf('ls', 'pwd', 'ls -a', 'git status --short'),
  })
  return worked === 0 ? [look] : [look, end]
}

const objectOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? { ...value } : {}

const LOOK_THOUGHT = prose(
  phrases(
    '{Let me|I will} {look|have a look} {around|at what is here} {first|before I answer}',
    'I {do not|cannot} know {what|which files} {is|lie} here {yet|so far}, so I {look|check}',
  ),
  { probability: 0.5, sentence: phrases('{After|Once} that I {can|will} {answer|say more}') },
)
const LOOK_SAY = phrase('{Let me|I will} {look around|check the folder|see what is here} {first|}')

const END_THOUGHT = prose(
  phrases(
    '{That|This} is {enough|all I need} {to answer|for an answer}',
    'I {know|have seen} {enough|what I need} {now|}',
  ),
)
const END_SAY = prose(
  phrases(
    'I {looked|had a look} {around|at the folder} and {nothing|no problem} {needs|wants} {attention|a change}',
    '{Everything|All} {is|looks} {as|the way} {it should be|I expected}',
  ),
  { probability: 0.4, sentence: phrases('{Tell me|Say} {what|which part} {to do|I should do} next') },
)
const REPORT_THOUGHT = phrases('{That|This} is {enough|all}, I {report|hand in} the {result|answer} {now|}')
