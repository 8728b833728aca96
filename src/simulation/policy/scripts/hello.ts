// The smallest task with an effect: write hello.txt through the shell, then say so.

import { oneOf } from '../grammar.js'
import { phrase, phrases, prose } from '../prose.js'
import { finish, run, type Script } from '../script.js'

export const hello: Script = ({ conversation, shell }) => {
  const written = conversation.calls.filter(call => call.text.includes('hello.txt') && call.result !== null).length
  if (shell === null || written >= 1 || conversation.assistantTurns >= 4) return [finish(DONE_THOUGHT, DONE)]
  return [
    run(shell, 'write', {
      thought: THOUGHT,
      say: SAY,
      command: oneOf('echo hello > hello.txt', 'printf hello > hello.txt'),
    }),
  ]
}

const THOUGHT = prose(
  phrases('The {file|greeting} {is|can be} {quickly|easily} {written|made} {with|by} {one|a single} command'),
  { probability: 0.5, sentence: phrases('{No|I need no} {look|preparation} {before|} that') },
)
const SAY = phrase('{Writing|I write} the {file|greeting} {now|}')
const DONE_THOUGHT = phrases('The {file|greeting} is {there|written}', '{Nothing|No work} {more|else} {to do|is left}')
const DONE = phrases(
  'The {file|greeting} is {written|in place}',
  '{Done|All done}, the {file|greeting} is {there|written}',
)
