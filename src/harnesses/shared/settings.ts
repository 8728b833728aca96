// What presets have in common: checked settings keys (a wrong key is found at submit, R-57), and problems in one shape.

import { z } from 'zod'
import type { AgentSpec } from '../../domain/task.js'

export type Problem = { readonly path: string; readonly message: string }

/** Accepted by every preset. `version`: the CLI's, empty = the pinned one; `sampling_seed` acts in the gateway, not in the CLI. */
export const commonSettings = {
  version: z
    .string()
    .regex(/^(\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?)?$/, 'wanted an exact version such as 1.2.3')
    .nullish(),
  sampling_seed: z.int().min(0).nullish(),
}

/** Unknown keys are refused by name; each problem has the path `settings.<key>`. */
export function settingsProblems(schema: z.ZodType, agent: AgentSpec): readonly Problem[] {
  const parsed = schema.safeParse(agent.settings)
  if (parsed.success) return []
  return parsed.error.issues.flatMap(issue => {
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map(key => ({ path: `settings.${key}`, message: 'is not a setting of this harness' }))
    }
    return [{ path: ['settings', ...issue.path.map(String)].join('.'), message: issue.message }]
  })
}

/** A harness without MCP or skills refuses them instead of ignoring them. */
export function unsupportedProblems(
  agent: AgentSpec,
  supports: { readonly mcp: boolean; readonly skills: boolean },
): readonly Problem[] {
  return [
    ...(!supports.mcp && agent.mcp_servers.length > 0
      ? [{ path: 'mcp_servers', message: 'must be empty: this harness has no MCP client' }]
      : []),
    ...(!supports.skills && agent.skills_path !== null
      ? [{ path: 'skills_path', message: 'must be null: this harness has no skills' }]
      : []),
  ]
}

/** Version of the CLI that the task asks for, or null for the pinned one. */
export function requestedVersion(agent: AgentSpec): string | null {
  const version = agent.settings['version']
  return typeof version === 'string' && version !== '' ? version : null
}
