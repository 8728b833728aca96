// Preset `shell`: the task's own command instead of an agent CLI. The instruction's path is in POLAR_INSTRUCTION_FILE.

import { z } from 'zod'
import type { HarnessPreset } from './base.js'
import { settingsProblems } from './shared/settings.js'

const settings = z.strictObject({ sampling_seed: z.int().min(0).nullish() })

export const shell: HarnessPreset = {
  id: 'shell',
  summary: 'Runs the command of `custom_shell`; the instruction lies in the file POLAR_INSTRUCTION_FILE names.',
  dialect: null,
  version: null,
  logName: null,
  install: null,
  defaultModel: 'sextant-policy',
  check(agent) {
    const problems = [...settingsProblems(settings, agent)]
    if (agent.custom_shell === null) problems.push({ path: 'custom_shell', message: 'is required for harness "shell"' })
    return problems
  },
  prepare({ agent }) {
    const custom = agent.custom_shell
    const step = custom && {
      command: custom.command,
      ...(custom.cwd !== undefined && { cwd: custom.cwd }),
      env: custom.env ?? {},
    }
    return { files: [], uploads: [], env: {}, setup: [], steps: step ? [step] : [], postprocess: [] }
  },
  sideCalls: [],
  workspaceLitter: [],
}
