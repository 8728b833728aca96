// Preset `opencode`: Chat Completions through its OpenAI-compatible provider. The configuration is the global one in the
// session's home, so nothing of it lies in the workspace. A given title saves the call that would make one.

import { join } from 'node:path'
import { z } from 'zod'
import type { JsonObject } from '../domain/json.js'
import type { HarnessInput, HarnessPreset } from './base.js'
import { errorText, exitCodeError, jsonLines } from './shared/json-lines.js'
import { commonSettings, settingsProblems } from './shared/settings.js'

const DEFAULT_CONTEXT = 262_144
const DEFAULT_OUTPUT = 8_192
const SMALL_MODEL = 'sextant-small'

const PERMISSIONS = [
  'read',
  'edit',
  'glob',
  'grep',
  'list',
  'bash',
  'task',
  'skill',
  'lsp',
  'webfetch',
  'websearch',
  'codesearch',
  'external_directory',
  'doom_loop',
] as const

const settings = z.strictObject({
  ...commonSettings,
  max_tokens: z.int().min(1).nullish(),
  variant: z.string().min(1).nullish(),
})

export const opencode: HarnessPreset = {
  id: 'opencode',
  summary: 'OpenCode (`opencode run`), JSON events, all permissions allowed.',
  dialect: 'openai_chat',
  version: '1.18.33',
  logName: 'opencode.txt',
  install: { package: 'opencode-ai', node: null, bin: 'node_modules/.bin/opencode' },
  defaultModel: 'sextant-policy',
  check: agent => settingsProblems(settings, agent),
  prepare(input) {
    const { homeDir, installDir, instruction, agent } = input
    const configDir = join(homeDir, '.config', 'opencode')
    const { provider, model } = modelOf(input.model)
    const { variant } = settings.parse(agent.settings)
    return {
      files: [
        { path: join(configDir, 'opencode.json'), content: JSON.stringify(config(input, provider, model), null, 2) },
        // At each start it would fetch its plugin library (20 MB) into this folder; it works without.
        { path: join(configDir, '.npmrc'), content: 'offline=true\n' },
      ],
      uploads: agent.skills_path === null ? [] : [{ source: agent.skills_path, target: join(configDir, 'skills') }],
      env: {
        OPENCODE_FAKE_VCS: 'git',
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      },
      setup: [],
      steps: [
        {
          command: [
            join(installDir ?? '', 'node_modules/.bin/opencode'),
            'run',
            '--format=json',
            '--title=session',
            `--model=${provider}/${model}`,
            ...(variant == null ? [] : [`--variant=${variant}`]),
          ],
          env: {},
          stdin: instruction,
        },
      ],
      postprocess: [],
    }
  },
  judge({ returnCode, stdout, stderr }) {
    const events = jsonLines(stdout)
    const lastError = events.findLastIndex(event => event['type'] === 'error')
    if (lastError < 0) return exitCodeError(returnCode, stderr, stdout)
    // After a compaction it goes on and ends well, but keeps exit code 1 for the error that led to it.
    const wentOn = events.slice(lastError).some(event => isFinalStep(event))
    return wentOn ? null : `opencode: ${errorText(events[lastError]?.['error'])}`
  },
  sideCalls: [
    { name: 'title', modelGlob: SMALL_MODEL },
    { name: 'compaction', noTools: true, systemIncludes: 'context summarization agent' },
  ],
  workspaceLitter: ['.opencode', '.config/opencode'],
}

function isFinalStep(event: Record<string, unknown>): boolean {
  const part = event['part'] as { reason?: unknown } | undefined
  return event['type'] === 'step_finish' && part?.reason === 'stop'
}

function modelOf(name: string): { readonly provider: string; readonly model: string } {
  const slash = name.indexOf('/')
  return slash < 0
    ? { provider: 'sextant', model: name }
    : { provider: name.slice(0, slash), model: name.slice(slash + 1) }
}

function config({ agent, contextWindow, gatewayUrl }: HarnessInput, provider: string, model: string): JsonObject {
  const { max_tokens: maxTokens } = settings.parse(agent.settings)
  const context = contextWindow ?? DEFAULT_CONTEXT
  const limit = { context, output: Math.min(maxTokens ?? DEFAULT_OUTPUT, context) }
  return {
    $schema: 'https://opencode.ai/config.json',
    autoupdate: false,
    share: 'disabled',
    model: `${provider}/${model}`,
    small_model: `${provider}/${SMALL_MODEL}`,
    permission: Object.fromEntries(PERMISSIONS.map(name => [name, 'allow'])),
    provider: {
      [provider]: {
        npm: '@ai-sdk/openai-compatible',
        name: provider,
        options: { baseURL: `${gatewayUrl}/v1`, apiKey: '{env:OPENAI_API_KEY}' },
        models: { [model]: { tool_call: true, limit }, [SMALL_MODEL]: { limit } },
      },
    },
    ...(agent.mcp_servers.length > 0 && { mcp: mcp(agent.mcp_servers) }),
  }
}

const mcp = (servers: HarnessInput['agent']['mcp_servers']): JsonObject =>
  Object.fromEntries(
    servers.map(server => [
      server.name,
      server.transport === 'stdio'
        ? { type: 'local', command: [server.command ?? '', ...(server.args ?? [])], enabled: true }
        : { type: 'remote', url: server.url ?? '', enabled: true },
    ]),
  )
