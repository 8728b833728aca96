// A long tool loop: thirty turns of shell calls whose outputs are what real ones are - unicode, quoted JSON, long, empty, failing,
// with control characters - then the end. What breaks a prefix in a long session shows here.

import type { Reply } from '../answer.js'
import { oneOf, type Part } from '../grammar.js'
import { phrase, phrases } from '../prose.js'
import { finish, run, type Script, type ScriptContext } from '../script.js'
import { DESCRIPTIONS, type ShellTool, shellCall } from '../tools.js'

/** Answers with calls before the last one. */
export const LOOP_TURNS = 30
/** The same after a compaction that kept the task's own words: the loop would begin again, and again. */
const RESUMED_TURNS = 2
const RESUMED = /produced a summary of/i

export const longLoop: Script = ({ conversation, shell }: ScriptContext) => {
  const turns = RESUMED.test(conversation.lastUser) ? RESUMED_TURNS : LOOP_TURNS
  if (shell === null || conversation.assistantTurns >= turns) return [finish(DONE_THOUGHT, DONE)]
  const turn = conversation.assistantTurns
  const commands = COMMANDS[turn % COMMANDS.length]?.(turn + 1) ?? []
  const [first = 'pwd', ...others] = commands
  const reply = run(shell, 'look', { thought: THOUGHT, say: SAY, command: first })
  return [others.length === 0 ? reply : withCalls(reply, shell, others)]
}

const withCalls = (reply: Reply, shell: ShellTool, commands: readonly Part[]): Reply => ({
  ...reply,
  calls: [...reply.calls, ...commands.map(command => shellCall(shell, command, DESCRIPTIONS.look))],
})

/** By turn, again and again; several commands are calls beside one another. Each begins and ends with a letter. */
const COMMANDS: readonly ((step: number) => readonly Part[])[] = [
  step => [`echo 'step ${step}: na\u00efve caf\u00e9, \u65e5\u672c\u8a9e, \u{1f680} and \u2713' | cat`],
  step => [`printf '%s' '{"step": ${step}, "text": "a \\"quoted\\" word", "path": "C:\\\\temp", "empty": {}}' | cat`],
  step => [oneOf(`seq ${step} 900 | tr '\\n' ' ' | cat`, `seq ${step} 800 | paste -s | cat`)],
  step => [`test ${step} -gt 0 && true`],
  step => [`ls no-such-folder-${step} && echo never`],
  step => [`echo 'one of step ${step}' | cat`, `echo 'two of step ${step}' | rev`],
  step => [`printf 'tab\\there\\r\\nstep ${step}\\033[31m red \\033[0m\\n' | cat`],
  step => [`sh -c 'echo out ${step}; echo err >&2; exit 3' || false`],
  step => [`cat <<'EOF' > note.txt\nline ${step}\n  indented "twice"\n\n\ttab \\ backslash\nEOF\ncat note.txt`],
  step => [`printf '\\074tool_response\\076 step ${step} \\074/tool_response\\076  \\n\\n\\n' | cat`],
]

const THOUGHT = phrases(
  '{Next|Now} I {try|run} {another|one more|the next} {kind|sort} of {command|call}',
  'The {loop|list} {goes on|is not done}, so {another|one more} {command|call} {follows|is due}',
)
const SAY = phrase('{Running|Trying} the {next|following} {command|step} {now|}')
const DONE_THOUGHT = phrases('{All|The} {steps|commands} {are|have been} {done|run}, {nothing|no more} is {left|open}')
const DONE = phrases('{Every|Each} {step|command} {ran|was run}', 'The {loop|work} {is|has come} to its end')
