// Preset `claude_code`: Anthropic Messages. Everything it writes goes below CLAUDE_CONFIG_DIR in the session's home. Its exit
// code is not enough: an API error ends with `is_error` in the last JSON line.

import { join } from 'node:path'
import { z } from 'zod'
import type { JsonObject } from '../domain/json.js'
import type { McpServer } from '../domain/task.js'
import type { HarnessInput, HarnessPreset } from './base.js'
import { errorText, exitCodeError, jsonLines } from './shared/json-lines.js'
import { commonSettings, settingsProblems } from './shared/settings.js'

/** Below this the CLI refuses a compaction window. */
const SMALLEST_COMPACTION_WINDOW = 100_000
const DEFAULT_OUTPUT = 32_000

const settings = z.strictObject({
  ...commonSettings,
  max_turns: z.int().min(1).nullish(),
  reasoning_effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).nullish(),
  max_budget_usd: z.number().positive().nullish(),
  fallback_model: z.string().min(1).nullish(),
  append_system_prompt: z.string().nullish(),
  allowed_tools: z.array(z.string().min(1)).nullish(),
  disallowed_tools: z.array(z.string().min(1)).nullish(),
  max_thinking_tokens: z.int().min(0).nullish(),
  max_output_tokens: z.int().min(1).nullish(),
})

export const claudeCode: HarnessPreset = {
  id: 'claude_code',
  summary: 'Claude Code, headless with stream JSON output; permissions are skipped.',
  dialect: 'anthropic_messages',
  version: '2.1.332',
  logName: 'claude-code.txt',
  install: { package: '@anthropic-ai/claude-code', node: null, bin: 'node_modules/.bin/claude' },
  defaultModel: 'sextant-policy',
  check: agent => settingsProblems(settings, agent),
  prepare(input) {
    const { homeDir, agent } = input
    const configDir = join(homeDir, '.claude')
    const mcpFile = join(configDir, 'mcp.json')
    const withMcp = agent.mcp_servers.length > 0
    return {
      files: withMcp ? [{ path: mcpFile, content: JSON.stringify({ mcpServers: mcpServers(agent.mcp_servers) }) }] : [],
      uploads: agent.skills_path === null ? [] : [{ source: agent.skills_path, target: join(configDir, 'skills') }],
      env: environment(input, configDir),
      setup: [],
      steps: [{ command: argv(input, withMcp ? mcpFile : null), env: {}, stdin: input.instruction }],
      postprocess: [],
    }
  },
  judge({ returnCode, stdout, stderr }) {
    const last = jsonLines(stdout).findLast(event => event['type'] === 'result')
    if (last?.['is_error'] === true) return `claude_code: ${errorText(last['result'] ?? last['errors'])}`
    return exitCodeError(returnCode, stderr, stdout)
  },
  sideCalls: [
    { name: 'title', noTools: true, systemIncludes: 'title' },
    { name: 'web_search', noTools: true, systemIncludes: 'web search tool use' },
    // It offers all tools and forbids their use.
    { name: 'compaction', lastUserIncludes: 'an <analysis> block followed by a <summary> block' },
  ],
  workspaceLitter: ['.claude'],
}

function argv({ installDir, model, agent }: HarnessInput, mcpFile: string | null): readonly string[] {
  const chosen = settings.parse(agent.settings)
  const flag = (name: string, value: string | number | null | undefined) => (value == null ? [] : [name, String(value)])
  return [
    join(installDir ?? '', 'node_modules/.bin/claude'),
    '--print',
    '--verbose',
    '--output-format=stream-json',
    '--dangerously-skip-permissions',
    ...flag('--model', model),
    ...flag('--max-turns', chosen.max_turns),
    ...flag('--effort', chosen.reasoning_effort),
    ...flag('--max-budget-usd', chosen.max_budget_usd),
    ...flag('--fallback-model', chosen.fallback_model),
    ...flag('--append-system-prompt', chosen.append_system_prompt),
    ...flag('--allowedTools', chosen.allowed_tools?.join(',')),
    ...flag('--disallowedTools', chosen.disallowed_tools?.join(',')),
    ...(mcpFile === null ? [] : ['--strict-mcp-config', '--mcp-config', mcpFile]),
  ]
}

function environment(input: HarnessInput, configDir: string): Record<string, string> {
  const { model, contextWindow, agent } = input
  const { max_thinking_tokens: thinking, max_output_tokens } = settings.parse(agent.settings)
  const output = max_output_tokens ?? outputLimit(contextWindow)
  return {
    CLAUDE_CONFIG_DIR: configDir,
    IS_SANDBOX: '1',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
    DISABLE_TELEMETRY: '1',
    DISABLE_ERROR_REPORTING: '1',
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: model,
    ANTHROPIC_DEFAULT_OPUS_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    CLAUDE_CODE_SUBAGENT_MODEL: model,
    ...(thinking != null && { MAX_THINKING_TOKENS: String(thinking) }),
    ...(output !== null && { CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(output) }),
    ...(contextWindow !== null && { CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(contextWindow) }),
    ...(contextWindow !== null &&
      contextWindow >= SMALLEST_COMPACTION_WINDOW && { CLAUDE_CODE_AUTO_COMPACT_WINDOW: String(contextWindow) }),
  }
}

/** It keeps room for a whole answer (32,000 tokens by itself), which in a small window leaves none for its own prompt. */
const outputLimit = (contextWindow: number | null): number | null =>
  contextWindow !== null && contextWindow < 4 * DEFAULT_OUTPUT ? Math.floor(contextWindow / 4) : null

/** This CLI wants the transport by name. */
const mcpServers = (servers: readonly McpServer[]): JsonObject =>
  Object.fromEntries(
    servers.map(server => [
      server.name,
      server.transport === 'stdio'
        ? { type: 'stdio', command: server.command ?? '', args: [...(server.args ?? [])] }
        : { type: server.transport === 'sse' ? 'sse' : 'http', url: server.url ?? '' },
    ]),
  )
