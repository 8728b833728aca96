// What a scenario's script is: from the conversation so far to what may come next, with weights. A function of the conversation
// alone, so that the same history leads to the same distribution.

import type { Reply } from './answer.js'
import type { Conversation } from './conversation.js'
import type { Part } from './grammar.js'
import { musing } from './musing.js'
import { DESCRIPTIONS, type ShellTool, shellCall } from './tools.js'

export interface ScriptContext {
  readonly conversation: Conversation
  /** null: the request offers no tool that runs commands. */
  readonly shell: ShellTool | null
  /** Probability that a written fix is right. */
  readonly solveProbability: number
}

/** At least one reply, each with weight above 0. */
export type Script = (context: ScriptContext) => readonly Reply[]

/** A reply that runs `command` in the harness's shell. */
export function run(
  shell: ShellTool,
  kind: keyof typeof DESCRIPTIONS,
  reply: { readonly weight?: number; readonly thought: Part; readonly say?: Part | null; readonly command: Part },
): Reply {
  return {
    weight: reply.weight ?? 1,
    thought: musing(reply.thought, kind === 'write' ? 8.5 : 4),
    say: reply.say ?? null,
    sayProbability: 0.6,
    calls: [shellCall(shell, reply.command, DESCRIPTIONS[kind])],
  }
}

/** A reply that ends the turn with a text. */
export const finish = (thought: Part, say: Part): Reply => ({
  weight: 1,
  thought: musing(thought, 2),
  say,
  calls: [],
})
