// The harness presets by wire name. The one line to add when a harness is added.

import { RolloutError } from '../domain/errors.js'
import type { HarnessPreset } from './base.js'
import { claudeCode } from './claude-code.js'
import { codex } from './codex.js'
import { geminiCli } from './gemini-cli.js'
import { opencode } from './opencode.js'
import { pi } from './pi.js'
import { qwenCode } from './qwen-code.js'
import { shell } from './shell.js'

export const harnesses = {
  shell,
  pi,
  qwen_code: qwenCode,
  codex,
  claude_code: claudeCode,
  gemini_cli: geminiCli,
  opencode,
} as const satisfies Record<string, HarnessPreset>

export type HarnessId = keyof typeof harnesses

export const isHarnessId = (id: string): id is HarnessId => Object.hasOwn(harnesses, id)

/** Throws HARNESS_UNKNOWN when no preset has this name. */
export function harnessPreset(id: string): HarnessPreset {
  if (isHarnessId(id)) return harnesses[id]
  throw new RolloutError(
    'HARNESS_UNKNOWN',
    `agent.harness: wanted one of ${Object.keys(harnesses).join(', ')}, got ${JSON.stringify(id)}`,
  )
}
