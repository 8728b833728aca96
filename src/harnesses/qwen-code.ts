// Preset `qwen_code`: Chat Completions. The model comes by OPENAI_MODEL, on purpose not by flag. Its memory sub-agent, which
// asks the model once more after the last answer, is off.

import { join } from 'node:path'
import { z } from 'zod'
import type { HarnessPreset } from './base.js'
import { errorText, exitCodeError, jsonLines } from './shared/json-lines.js'
import { mcpServerMap } from './shared/mcp.js'
import { commonSettings, settingsProblems } from './shared/settings.js'

const settings = z.strictObject({
  ...commonSettings,
  max_session_turns: z.int().min(1).nullish(),
})

export const qwenCode: HarnessPreset = {
  id: 'qwen_code',
  summary: 'Qwen Code, headless, all tools approved.',
  dialect: 'openai_chat',
  version: '0.24.4',
  logName: 'qwen-code.txt',
  install: { package: '@qwen-code/qwen-code', node: null, bin: 'node_modules/.bin/qwen' },
  defaultModel: 'sextant-policy',
  check: agent => settingsProblems(settings, agent),
  prepare({ agent, homeDir, installDir, instruction, model, contextWindow }) {
    const { max_session_turns: turns } = settings.parse(agent.settings)
    const configDir = join(homeDir, '.qwen')
    const config = {
      security: { auth: { selectedType: 'openai' } },
      general: { enableAutoUpdate: false },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
      model: {
        name: model,
        skipNextSpeakerCheck: true,
        ...(contextWindow !== null && { generationConfig: { contextWindowSize: contextWindow } }),
      },
      ...(agent.mcp_servers.length > 0 && { mcpServers: mcpServerMap(agent.mcp_servers, 'httpUrl') }),
    }
    return {
      files: [{ path: join(configDir, 'settings.json'), content: JSON.stringify(config, null, 2) }],
      uploads: agent.skills_path === null ? [] : [{ source: agent.skills_path, target: join(configDir, 'skills') }],
      // It would start itself a second time with a larger heap.
      env: { OPENAI_MODEL: model, QWEN_CODE_SUPPRESS_YOLO_WARNING: '1', QWEN_CODE_NO_RELAUNCH: 'true' },
      setup: [],
      steps: [
        {
          command: [
            join(installDir ?? '', 'node_modules/.bin/qwen'),
            '--yolo',
            '--output-format=stream-json',
            ...(turns == null ? [] : [`--max-session-turns=${turns}`]),
          ],
          env: {},
          stdin: instruction,
        },
      ],
      postprocess: [],
    }
  },
  judge({ returnCode, stdout, stderr }) {
    const last = jsonLines(stdout).findLast(event => event['type'] === 'result')
    if (last?.['is_error'] === true) return `qwen_code: ${errorText(last['error'])}`
    return exitCodeError(returnCode, stderr, stdout)
  },
  // No header tells them apart; each kind of sub-agent has a system prompt of its own.
  sideCalls: [
    { name: 'subagent', isSubAgent: true, noTools: false, systemLacks: 'You are Qwen Code' },
    // It offers all tools and forbids their use.
    { name: 'compaction', lastUserIncludes: 'produce the <state_snapshot> XML' },
  ],
  workspaceLitter: ['.qwen'],
}
