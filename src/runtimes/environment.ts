// The one place where a child's environment comes from. Nothing of the service's own environment leaks: it starts empty.
// `runtimeEnvironment` is bound to a place (folders, marker, git); `stageEnvironment` is bound to what is being done
// (gateway, task's layers). Keys and URLs of the model exist only from harness setup to postrun.

import { delimiter, join } from 'node:path'
import type { AgentSpec, EvaluatorSpec, RuntimeSpec } from '../domain/task.js'
import type { RuntimeHandle } from './base.js'
import { ROLE_MARKER, SESSION_MARKER } from './processes.js'

export interface SessionLayout {
  readonly sessionDir: string
  readonly workspaceDir: string
  readonly homeDir: string
  readonly tmpDir: string
  readonly artifactsDir: string
  readonly logsDir: string
  readonly agentLogDir: string
  readonly evalLogDir: string
}

/** Folders of a runtime below its session folder; the same for the fresh copy below `eval_runtime/`. */
export const sessionLayout = (sessionDir: string): SessionLayout => ({
  sessionDir,
  workspaceDir: join(sessionDir, 'workspace'),
  homeDir: join(sessionDir, 'home'),
  tmpDir: join(sessionDir, 'tmp'),
  artifactsDir: join(sessionDir, 'artifacts'),
  logsDir: join(sessionDir, 'logs'),
  agentLogDir: join(sessionDir, 'logs', 'agent'),
  evalLogDir: join(sessionDir, 'logs', 'eval'),
})

/** Session folder of the fresh copy for grading. */
export const evalSessionDir = (sessionDir: string): string => join(sessionDir, 'eval_runtime')

export type EnvironmentStage = 'prepare' | 'setup' | 'run' | 'postrun' | 'eval_prepare' | 'evaluation'

const AGENT_STAGES: readonly EnvironmentStage[] = ['setup', 'run', 'postrun']

/** Names that carry the session's model access, with the aliases that harnesses read. */
const MODEL_ACCESS = [
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_AUTH_TOKEN',
  'ANTHROPIC_BASE_URL',
  'CODEX_API_KEY',
  'GEMINI_API_KEY',
  'GOOGLE_API_KEY',
  'GOOGLE_API_URL',
  'GOOGLE_GEMINI_BASE_URL',
  'OPENAI_API_BASE',
  'OPENAI_API_KEY',
  'OPENAI_BASE_URL',
] as const

/** Names that the service sets last. */
const FIXED = [
  'AGENT_LOG_DIR',
  'ARTIFACTS_DIR',
  'HOME',
  'LOGS_DIR',
  'POLAR_ALLOW_INTERNET',
  'POLAR_CONTROL_PLANE_TOKEN',
  'POLAR_INSTRUCTION_FILE',
  'SESSION_DIR',
  'SESSION_ID',
  'TASK_ID',
  'TMPDIR',
] as const

/**
 * Environment that belongs to a runtime's place; `exec` applies it under the request's own, and `fixed` over it.
 * `basePath`: PATH of the service.
 */
export function runtimeEnvironment(
  handle: RuntimeHandle,
  basePath: string,
): { readonly defaults: Readonly<Record<string, string>>; readonly fixed: Readonly<Record<string, string>> } {
  const layout = sessionLayout(handle.sessionDir)
  return {
    defaults: {
      PATH: commandPath(basePath),
      LANG: 'C.UTF-8',
      SHELL: '/bin/bash',
      // `git commit` in a fresh HOME exits 128 without an identity.
      GIT_AUTHOR_NAME: 'agent',
      GIT_AUTHOR_EMAIL: 'agent@localhost',
      GIT_COMMITTER_NAME: 'agent',
      GIT_COMMITTER_EMAIL: 'agent@localhost',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_SYSTEM: '/dev/null',
      GIT_TERMINAL_PROMPT: '0',
      GIT_PAGER: 'cat',
      PAGER: 'cat',
    },
    fixed: {
      HOME: handle.homeDir,
      TMPDIR: layout.tmpDir,
      SESSION_DIR: handle.sessionDir,
      ARTIFACTS_DIR: layout.artifactsDir,
      LOGS_DIR: layout.logsDir,
      AGENT_LOG_DIR: layout.agentLogDir,
      // A workspace without a repository must not find one that happens to lie above the state folder.
      GIT_CEILING_DIRECTORIES: handle.sessionDir,
      [SESSION_MARKER]: handle.sessionId,
      [ROLE_MARKER]: handle.role,
    },
  }
}

/** PATH without the folders that a package script of the service's own start put in front. */
export const commandPath = (basePath: string, first: readonly string[] = []): string =>
  [...first, ...basePath.split(delimiter)]
    .filter(part => part !== '' && !/(^|\/)node_modules\/\.bin$|\/node-gyp-bin$/.test(part))
    .join(delimiter)

export interface StageEnvironmentInput {
  readonly stage: EnvironmentStage
  readonly sessionId: string
  readonly taskId: string
  readonly runtime: RuntimeSpec
  readonly agent: AgentSpec
  readonly evaluator: EvaluatorSpec | null
  /** Model port of the session, without `/v1`, and its key. Used in the agent's stages only. */
  readonly gateway: { readonly url: string; readonly key: string } | null
  readonly stepEnv?: Readonly<Record<string, string>>
}

/** Lowest to highest: gateway values, `runtime.env`, `agent.env` (agent's stages), `evaluator.env` (evaluation), the step's own, fixed values. */
export function stageEnvironment(input: StageEnvironmentInput): Readonly<Record<string, string>> {
  const agentStage = AGENT_STAGES.includes(input.stage)
  return {
    ...(agentStage && input.gateway ? gatewayValues(input.gateway) : {}),
    ...input.runtime.env,
    ...(agentStage ? input.agent.env : {}),
    ...(input.stage === 'evaluation' ? input.evaluator?.env : {}),
    ...input.stepEnv,
    SESSION_ID: input.sessionId,
    TASK_ID: input.taskId,
    POLAR_ALLOW_INTERNET: String(input.runtime.allow_internet),
  }
}

/** Base URLs and keys of the contract, section 6.3. */
function gatewayValues({ url, key }: { readonly url: string; readonly key: string }): Record<string, string> {
  return {
    ANTHROPIC_BASE_URL: url,
    OPENAI_BASE_URL: `${url}/v1`,
    GOOGLE_API_URL: url,
    ANTHROPIC_API_KEY: key,
    OPENAI_API_KEY: key,
    GOOGLE_API_KEY: key,
  }
}

export type EnvironmentLayer = 'runtime' | 'agent' | 'step' | 'evaluator'

/** Problems of a map that a task states: bad names, and names it may not replace. */
export function environmentNameProblems(
  env: Readonly<Record<string, string>>,
  layer: EnvironmentLayer,
): readonly { readonly name: string; readonly message: string }[] {
  return Object.entries(env).flatMap(([name, value]) => {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      return [{ name, message: 'must be the name of an environment variable' }]
    if (value.includes('\0')) return [{ name, message: 'must not contain a NUL character' }]
    return isProtected(name, layer)
      ? [{ name, message: 'is set by the gateway for every session and cannot be replaced' }]
      : []
  })
}

/** An evaluator may bring a key of its own (a judge's), since the session's is not there. */
function isProtected(name: string, layer: EnvironmentLayer): boolean {
  if (name.startsWith('SEXTANT_')) return true
  if ((FIXED as readonly string[]).includes(name)) return true
  return layer !== 'evaluator' && (MODEL_ACCESS as readonly string[]).includes(name)
}
