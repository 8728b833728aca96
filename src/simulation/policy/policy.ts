// The policy: from one request to the automaton of what may be answered. It sees the request and nothing else. The script is picked
// by a line `Scenario: NAME` in a user message; requests without tools are side calls whatever they quote.

import { RolloutError } from '../../domain/errors.js'
import type { Tokenizer } from '../../tokenizer/tokenizer.js'
import { DRIFT_FORMS, type DriftForm, isDriftForm } from '../drift.js'
import { type AnswerStyle, answer, type Reply, speller } from './answer.js'
import { type Conversation, readConversation } from './conversation.js'
import { compile, type Part, type Program, sequence } from './grammar.js'
import type { Script, ScriptContext } from './script.js'
import { delegate } from './scripts/delegate.js'
import { drunkAnswer } from './scripts/drunk.js'
import { fixCalculator } from './scripts/fix-calculator.js'
import { generic } from './scripts/generic.js'
import { hello } from './scripts/hello.js'
import { longLoop } from './scripts/long-loop.js'
import { asksForSummary, sideReply } from './scripts/side.js'
import { findShell, instanceOf, type OfferedTool, plainCall } from './tools.js'

/** Scenarios by the name that a task's instruction gives. `drunk` writes whole answers and stands apart. */
const SCRIPTS: Readonly<Record<string, Script>> = {
  delegate,
  'fix-calculator': fixCalculator,
  hello,
  'long-loop': longLoop,
}

/** Compiled answers kept; a compiled answer is some 100 KB at most. */
const KEPT_PROGRAMS = 64

export interface PolicyRequest {
  readonly messages: readonly Readonly<Record<string, unknown>>[]
  /** Empty also where the request forbids calls. */
  readonly tools: readonly OfferedTool[]
  /** A call is a must: of this tool, or of any (`null`). undefined = free. */
  readonly mustCall: string | null | undefined
  /** JSON schema asked for; null = any JSON; undefined = text. */
  readonly schema: unknown
  readonly thinking: boolean
}

export interface Policy {
  program(request: PolicyRequest): Program
}

/** The forms named in `drift`. Throws CONFIG_INVALID naming the first unknown one. */
export function driftForms(drift: readonly string[]): ReadonlySet<DriftForm> {
  return new Set(
    drift.map((name, index) => {
      if (isDriftForm(name)) return name
      const known = Object.keys(DRIFT_FORMS).join(', ')
      throw new RolloutError(
        'CONFIG_INVALID',
        `simulation.drift[${index}]: unknown form ${JSON.stringify(name)}; known: ${known}`,
      )
    }),
  )
}

export function createPolicy(
  tokenizer: Tokenizer,
  settings: { readonly solveProbability: number; readonly drift: ReadonlySet<DriftForm> },
): Policy {
  const spell = speller(tokenizer, settings.drift)
  const programs = new Map<string, Program>()
  return {
    program: request => {
      const part = answerPart(request, settings)
      const key = JSON.stringify(part)
      const known = programs.get(key)
      programs.delete(key)
      const program = known ?? compile(part, spell)
      programs.set(key, program)
      for (const oldest of programs.keys()) {
        if (programs.size <= KEPT_PROGRAMS) break
        programs.delete(oldest)
      }
      return program
    },
  }
}

/** What may be answered to `request`, end token included. */
export function answerPart(
  request: PolicyRequest,
  settings: { readonly solveProbability: number; readonly drift: ReadonlySet<DriftForm> },
): Part {
  const conversation = readConversation(request.messages, request.tools)
  const style: AnswerStyle = { thinking: request.thinking, drift: settings.drift }
  if (request.schema !== undefined || request.tools.length === 0 || asksForSummary(conversation)) {
    return answer([sideReply(conversation, request.schema)], style)
  }
  const context: ScriptContext = {
    conversation,
    shell: findShell(request.tools),
    solveProbability: settings.solveProbability,
  }
  if (conversation.scenario === 'drunk') return sequence(drunkAnswer(context, request.thinking), '<|im_end|>')
  const script = SCRIPTS[conversation.scenario ?? ''] ?? generic
  const replies = script(context)
  return answer(request.mustCall === undefined ? replies : called(replies, request.mustCall, conversation), style)
}

/** The replies that call, as a request with `tool_choice` wants; where none does, the tool is called with what its schema wants. */
function called(replies: readonly Reply[], name: string | null, { tools }: Conversation): readonly Reply[] {
  const fitting = replies.filter(reply => reply.calls.length > 0 && (name === null || callsOnly(reply, name)))
  const tool = tools.find(offered => name === null || offered.name === name) ?? tools[0]
  if (fitting.length > 0 || tool === undefined) return fitting.length > 0 ? fitting : replies
  const args = instanceOf({ type: 'object', ...tool.schema })
  const call = plainCall(tool.name, typeof args === 'object' && args !== null ? { ...args } : {})
  return replies.slice(0, 1).map(reply => ({ ...reply, calls: [call] }))
}

const callsOnly = (reply: Reply, name: string): boolean =>
  reply.calls.every(call =>
    JSON.stringify(call).includes(JSON.stringify(`"name": ${JSON.stringify(name)}`).slice(1, -1)),
  )
