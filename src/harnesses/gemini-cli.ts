// Preset `gemini_cli`: Gemini generateContent. Always run with a model name: without one a router call goes out first.

import { join } from 'node:path'
import { z } from 'zod'
import type { HarnessPreset } from './base.js'
import { errorText, exitCodeError, jsonLines } from './shared/json-lines.js'
import { mcpServerMap } from './shared/mcp.js'
import { commonSettings, settingsProblems } from './shared/settings.js'

const settings = z.strictObject({
  ...commonSettings,
  sandbox: z.literal(false, 'must be false: the CLI brings no sandbox that works in a session').nullish(),
})

export const geminiCli: HarnessPreset = {
  id: 'gemini_cli',
  summary: 'Google Gemini CLI, headless, all tools approved.',
  dialect: 'google_generate',
  version: '0.61.0',
  logName: 'gemini-cli.txt',
  install: { package: '@google/gemini-cli', node: null, bin: 'node_modules/.bin/gemini' },
  defaultModel: 'sextant-policy',
  check: agent => settingsProblems(settings, agent),
  prepare({ agent, homeDir, installDir, instruction, model, gatewayUrl, sessionKey }) {
    const configDir = join(homeDir, '.gemini')
    const config = {
      security: { auth: { selectedType: 'gemini-api-key' } },
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      ...(agent.mcp_servers.length > 0 && { mcpServers: mcpServerMap(agent.mcp_servers, 'httpUrl') }),
    }
    return {
      files: [{ path: join(configDir, 'settings.json'), content: JSON.stringify(config, null, 2) }],
      uploads: agent.skills_path === null ? [] : [{ source: agent.skills_path, target: join(configDir, 'skills') }],
      env: {
        GEMINI_CLI_TRUST_WORKSPACE: 'true',
        // It would start itself a second time with a larger heap.
        GEMINI_CLI_NO_RELAUNCH: 'true',
        GEMINI_API_KEY: sessionKey,
        GOOGLE_GEMINI_BASE_URL: gatewayUrl,
      },
      setup: [],
      steps: [
        {
          command: [
            join(installDir ?? '', 'node_modules/.bin/gemini'),
            '--approval-mode=yolo',
            `--model=${model}`,
            '--output-format=stream-json',
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
    if (last?.['status'] === 'error') return `gemini_cli: ${errorText(last['error'])}`
    return exitCodeError(returnCode, stderr, stdout)
  },
  // Router, web search and loop checks ask for Google's small models and offer no function tools.
  // A sub-agent, and only it, is offered the tool that hands in its result.
  sideCalls: [
    { name: 'utility', modelGlob: 'gemini-*', noTools: true },
    { name: 'subagent', isSubAgent: true, offersTool: 'complete_task' },
  ],
  workspaceLitter: ['.gemini'],
}
