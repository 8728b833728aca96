// Preset `codex`: OpenAI Responses. All configuration is one config.toml, written from a map by a TOML writer, top-level keys
// first: a key after a table would belong to the table. Its HOME must not lie under the system's temporary folder.

import { join } from 'node:path'
import { stringify } from 'smol-toml'
import { z } from 'zod'
import type { HarnessInput, HarnessPreset } from './base.js'
import { errorText, exitCodeError, jsonLines } from './shared/json-lines.js'
import { mcpServerMap } from './shared/mcp.js'
import { commonSettings, settingsProblems } from './shared/settings.js'

/** The engine may be silent for long while it queues; the gateway has its own limits. */
const STREAM_IDLE_MS = 900_000

const settings = z.strictObject({
  ...commonSettings,
  model_reasoning_effort: z.enum(['minimal', 'low', 'medium', 'high', 'xhigh']).nullish(),
  model_reasoning_summary: z.enum(['auto', 'concise', 'detailed', 'none']).nullish(),
  model_auto_compact_token_limit: z.int().min(1).nullish(),
})

export const codex: HarnessPreset = {
  id: 'codex',
  summary: 'OpenAI Codex CLI (`codex exec`), JSON events; approvals and sandbox are bypassed.',
  dialect: 'openai_responses',
  version: '0.171.0',
  logName: 'codex.txt',
  install: { package: '@openai/codex', node: null, bin: 'node_modules/.bin/codex' },
  // An unknown slug: plain function tools in place of custom grammars.
  defaultModel: 'sextant-policy',
  check(agent) {
    return [
      ...settingsProblems(settings, agent),
      ...agent.mcp_servers.flatMap((server, index) =>
        server.transport === 'sse'
          ? [
              {
                path: `mcp_servers[${index}].transport`,
                message: 'wanted stdio or streamable-http: codex has no SSE client',
              },
            ]
          : [],
      ),
    ]
  },
  prepare(input) {
    const codexHome = join(input.homeDir, '.codex')
    const { skills_path: skills } = input.agent
    return {
      files: [{ path: join(codexHome, 'config.toml'), content: configToml(input) }],
      uploads: skills === null ? [] : [{ source: skills, target: join(input.homeDir, '.agents', 'skills') }],
      env: { CODEX_HOME: codexHome },
      setup: [],
      steps: [
        {
          command: [
            join(input.installDir ?? '', 'node_modules/.bin/codex'),
            'exec',
            '--dangerously-bypass-approvals-and-sandbox',
            '--skip-git-repo-check',
            '--json',
            '-',
          ],
          env: {},
          stdin: input.instruction,
        },
      ],
      postprocess: [
        { command: ['cp', '-R', join(codexHome, 'sessions'), join(input.logsDir, 'codex-sessions')], env: {} },
      ],
    }
  },
  judge({ returnCode, stdout, stderr }) {
    const failed = jsonLines(stdout).findLast(event => event['type'] === 'turn.failed')
    if (failed && returnCode !== 0) return `codex: ${errorText(failed['error'])}`
    return exitCodeError(returnCode, stderr, stdout)
  },
  sideCalls: [
    { name: 'compaction', headerIncludes: { name: 'x-codex-turn-metadata', text: '"request_kind":"compaction"' } },
  ],
  workspaceLitter: ['.codex', '.agents'],
}

/** Prefixes of other services are no part of a slug. */
const slug = (model: string): string => model.replace(/^(openai|anthropic|gcp\/google|google)\//, '')

function configToml(input: HarnessInput): string {
  const chosen = settings.parse(input.agent.settings)
  const top = {
    model: slug(input.model),
    model_provider: 'sextant',
    ...(input.contextWindow !== null && { model_context_window: input.contextWindow }),
    ...(chosen.model_auto_compact_token_limit != null && {
      model_auto_compact_token_limit: chosen.model_auto_compact_token_limit,
    }),
    ...(chosen.model_reasoning_effort != null && { model_reasoning_effort: chosen.model_reasoning_effort }),
    ...(chosen.model_reasoning_summary != null && { model_reasoning_summary: chosen.model_reasoning_summary }),
    check_for_update_on_startup: false,
    web_search: 'disabled',
  }
  return stringify({
    ...top,
    analytics: { enabled: false },
    features: { plugins: false, apps: false, remote_plugin: false, shell_snapshot: false },
    model_providers: {
      sextant: {
        name: 'sextant',
        base_url: `${input.gatewayUrl}/v1`,
        env_key: 'OPENAI_API_KEY',
        wire_api: 'responses',
        stream_idle_timeout_ms: STREAM_IDLE_MS,
      },
    },
    ...(input.agent.mcp_servers.length > 0 && { mcp_servers: mcpServerMap(input.agent.mcp_servers, 'url') }),
  })
}
