// Hands part of the work to a sub-agent where the harness offers one, waits for what comes of it, and ends. The sub-agent's own prompt
// names no scenario, so it looks around and answers.

import { isObject } from '../../../domain/json.js'
import { oneOf } from '../grammar.js'
import { phrase, phrases } from '../prose.js'
import { finish, run, type Script } from '../script.js'
import { instanceOf, type OfferedTool, plainCall } from '../tools.js'

const AGENT_TOOLS = /(^|__|[.:/])(agent|task|invoke_agent|spawn_agent)$/i
/** Turns after the delegation in which a sub-agent that runs beside its parent can end. */
const WAITING_TURNS = 2

export const delegate: Script = ({ conversation, shell }) => {
  const tool = conversation.tools.find(({ name }) => AGENT_TOOLS.test(name))
  const delegated = conversation.calls.findIndex(call => AGENT_TOOLS.test(call.name))
  if (tool !== undefined && delegated < 0) {
    return [{ weight: 1, thought: THOUGHT, say: null, calls: [plainCall(tool.name, argumentsFor(tool))] }]
  }
  const waited = conversation.calls.length - Math.max(0, delegated) - 1
  if (shell === null || waited >= WAITING_TURNS) return [finish(DONE_THOUGHT, DONE)]
  return [run(shell, 'look', { thought: WAIT_THOUGHT, command: oneOf('sleep 2 && ls', 'sleep 2 && pwd') })]
}

/** What the tool's schema wants, with the words a sub-agent needs and no running in the background. */
function argumentsFor({ name: tool, schema }: OfferedTool): Readonly<Record<string, unknown>> {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const wanted = instanceOf({ ...schema, type: 'object' })
  const given = Object.entries({ ...WORDS, ...(tool === 'task' && { subagent_type: 'general' }) }).filter(
    ([name]) => name in properties,
  )
  return { ...(isObject(wanted) ? wanted : {}), ...Object.fromEntries(given) }
}

const TEXT = 'Look at the files of this folder and say in one sentence what they are.'
/** By the names that harnesses give the arguments of their sub-agent tools. */
const WORDS: Readonly<Record<string, unknown>> = {
  description: 'Look at the files',
  prompt: TEXT,
  message: TEXT,
  task_name: 'look_at_files',
  subagent_type: 'general-purpose',
  agent_name: 'generalist',
  run_in_background: false,
}

const THOUGHT = phrases(
  '{Somebody|A helper} {else|of mine} {can|could} {look|read} {meanwhile|for me}',
  '{This|That} {part|piece} {can|should} {go|be given} to a {helper|colleague}',
)
const WAIT_THOUGHT = phrases(
  'I {wait|pause} {a little|for a moment} {before|until} the {answer|report} {comes|is there}',
)
const DONE_THOUGHT = phrases('The {helper|colleague} {had|has had} {time|its turn} {enough|by now}')
const DONE = phrase('{The work|The look} {was|has been} {handed on|delegated} and {is|seems} {done|finished}')
