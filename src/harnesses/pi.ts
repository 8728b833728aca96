// Preset `pi`: Chat Completions by default, under the npm package `node` at 22, which this CLI really needs. In JSON mode it
// exits 0 on errors, so its events tell how it went.

import { join } from 'node:path'
import { z } from 'zod'
import type { JsonObject } from '../domain/json.js'
import type { HarnessInput, HarnessPreset } from './base.js'
import { errorText, exitCodeError } from './shared/json-lines.js'
import { commonSettings, settingsProblems, unsupportedProblems } from './shared/settings.js'

const DEFAULT_CONTEXT = 262_144
const DEFAULT_OUTPUT = 8_192

const settings = z.strictObject({
  ...commonSettings,
  thinking: z.enum(['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).nullish(),
  api_type: z.enum(['openai-completions', 'openai-responses', 'anthropic-messages', 'google-generative-ai']).nullish(),
  context_window: z.int().min(1).nullish(),
  max_tokens: z.int().min(1).nullish(),
  compat: z.record(z.string(), z.json()).nullish(),
})

export const pi: HarnessPreset = {
  id: 'pi',
  summary: 'Pi coding agent, JSON events, no session file.',
  dialect: 'openai_chat',
  version: '1.6.0',
  logName: 'pi.txt',
  install: { package: '@earendil-works/pi-coding-agent', node: '22.23.3', bin: 'node_modules/.bin/pi' },
  defaultModel: 'sextant/policy',
  check(agent) {
    const problems = [...settingsProblems(settings, agent), ...unsupportedProblems(agent, { mcp: false, skills: true })]
    const name = agent.model_name
    if (name !== null && !/^[^/]+\/.+$/.test(name)) {
      problems.push({ path: 'model_name', message: 'wanted provider/model for harness "pi"' })
    }
    return problems
  },
  prepare(input) {
    const { homeDir, installDir, instruction, agent } = input
    const piDir = join(homeDir, '.pi', 'agent')
    const slash = input.model.indexOf('/')
    const provider = input.model.slice(0, slash)
    const model = input.model.slice(slash + 1)
    const { thinking } = settings.parse(agent.settings)
    return {
      files: [{ path: join(piDir, 'models.json'), content: JSON.stringify(models(input, provider, model), null, 2) }],
      uploads: agent.skills_path === null ? [] : [{ source: agent.skills_path, target: join(piDir, 'skills') }],
      env: { PI_OFFLINE: '1', PI_TELEMETRY: '0', PI_SKIP_VERSION_CHECK: '1' },
      setup: [],
      steps: [
        {
          command: [
            join(installDir ?? '', 'node_modules/.bin/pi'),
            '--print',
            '--mode',
            'json',
            '--no-session',
            '--no-mcp',
            '--provider',
            provider,
            '--model',
            model,
            ...(thinking == null ? [] : ['--thinking', thinking]),
          ],
          env: {},
          stdin: instruction,
        },
      ],
      postprocess: [],
    }
  },
  judge({ returnCode, stdout, stderr }) {
    if (returnCode !== 0) return exitCodeError(returnCode, stderr, stdout)
    // The last event repeats all messages in one line, longer than the tail in a long chat; so the text is searched, not parsed.
    // Inside JSON strings the quotation marks are escaped and do not match.
    const reason = [...stdout.matchAll(/"stopReason":"(\w+)"/g)].at(-1)?.[1]
    if (reason === undefined) return 'pi ended without an answer'
    if (reason !== 'error' && reason !== 'aborted') return null
    const text = [...stdout.matchAll(/"errorMessage":("(?:[^"\\]|\\.)*")/g)].at(-1)?.[1]
    return `pi: ${errorText(text === undefined ? reason : JSON.parse(text))}`
  },
  sideCalls: [{ name: 'compaction', noTools: true, systemIncludes: 'context summarization assistant' }],
  workspaceLitter: ['.pi'],
}

function models({ agent, gatewayUrl, contextWindow }: HarnessInput, provider: string, model: string): JsonObject {
  const chosen = settings.parse(agent.settings)
  const api = chosen.api_type ?? 'openai-completions'
  const suffix = { 'anthropic-messages': '', 'google-generative-ai': '/v1beta' }[api as string] ?? '/v1'
  return {
    providers: {
      [provider]: {
        baseUrl: `${gatewayUrl}${suffix}`,
        api,
        apiKey: '$OPENAI_API_KEY',
        compat: {
          supportsDeveloperRole: false,
          supportsReasoningEffort: false,
          supportsStore: false,
          maxTokensField: 'max_tokens',
          ...chosen.compat,
        },
        models: [
          {
            id: model,
            contextWindow: chosen.context_window ?? contextWindow ?? DEFAULT_CONTEXT,
            maxTokens: chosen.max_tokens ?? DEFAULT_OUTPUT,
            reasoning: chosen.thinking != null && chosen.thinking !== 'off',
          },
        ],
      },
    },
  }
}
