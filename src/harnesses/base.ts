// A harness preset: how one agent program is installed, configured, started and judged. Mostly data.

import type { DialectId } from '../domain/conversation.js'
import type { AgentSpec } from '../domain/task.js'

/** What a preset may put into its files, argv and environment. Pure: it looks at nothing else. */
export interface HarnessInput {
  readonly instruction: string
  /** File with the instruction, inside the session folder. */
  readonly instructionFile: string
  /** Gateway model port of this session, without `/v1`, e.g. `http://127.0.0.1:8801`. */
  readonly gatewayUrl: string
  readonly sessionKey: string
  readonly model: string
  readonly agent: AgentSpec
  readonly homeDir: string
  readonly workspaceDir: string
  /** Folder of the agent's logs. */
  readonly logsDir: string
  /** Tokens; null = not known. Written into the harness's own config where it has one. */
  readonly contextWindow: number | null
  /** `cacheDir/harnesses/<id>@<version>`; null for `shell`. */
  readonly installDir: string | null
}

export interface HarnessFile {
  /** Absolute, inside the session folder, outside the workspace. */
  readonly path: string
  readonly content: string
  readonly mode?: number
}

/** Contents of a folder of this host, copied into the session's home. */
export interface HarnessUpload {
  readonly source: string
  readonly target: string
}

export interface HarnessStep {
  readonly command: string | readonly string[]
  readonly cwd?: string
  readonly env: Readonly<Record<string, string>>
  readonly stdin?: string
}

export interface HarnessRun {
  readonly files: readonly HarnessFile[]
  readonly uploads: readonly HarnessUpload[]
  /** For every command of this harness, setup to postrun. */
  readonly env: Readonly<Record<string, string>>
  readonly setup: readonly HarnessStep[]
  /** Run in order; the first failure stops. */
  readonly steps: readonly HarnessStep[]
  /** After the steps, in the agent's remaining budget; a failure is noted and changes nothing. */
  readonly postprocess: readonly HarnessStep[]
}

export interface HarnessInstall {
  /** npm package of the CLI; its version is the preset's, or the task's `settings.version`. */
  readonly package: string
  /** npm package `node` version that must come first on PATH, e.g. `22.23.3`; null = the service's own Node. */
  readonly node: string | null
  /** Path of the executable below the install folder, e.g. `node_modules/.bin/gemini`. */
  readonly bin: string
}

export interface SideCallRule {
  readonly name: string
  /** A call that meets the rule is a sub-agent's work, not a side call; `name` becomes the sub-agent's. */
  readonly isSubAgent?: boolean
  /** Any condition that is given must hold. */
  readonly modelGlob?: string
  readonly noTools?: boolean
  readonly maxTokensAtMost?: number
  readonly systemIncludes?: string
  readonly systemLacks?: string
  readonly offersTool?: string
  /** In the last message, where that is a user's. */
  readonly lastUserIncludes?: string
  readonly headerIncludes?: { readonly name: string; readonly text: string }
}

export interface HarnessPreset {
  readonly id: string
  readonly summary: string
  readonly dialect: DialectId | null
  /** Pinned version of the CLI, one that a test has run; null for `shell`. */
  readonly version: string | null
  /** Name of the combined log of all steps, in the agent's log folder. */
  readonly logName: string | null
  readonly install: HarnessInstall | null
  /** Model name when the task gives none. */
  readonly defaultModel: string
  /** Problems of an agent spec (unknown settings, MCP where there is none ...); `path` starts in the spec. Called at submit. */
  check(agent: AgentSpec): readonly { readonly path: string; readonly message: string }[]
  prepare(input: HarnessInput): HarnessRun
  /**
   * The harness's own verdict on a step that ended by itself, where its exit code does not tell: null = fine, else an error
   * text. It decides alone, whatever the code; without it code 0 is fine. The streams are tails.
   */
  judge?(result: { readonly returnCode: number; readonly stdout: string; readonly stderr: string }): string | null
  readonly sideCalls: readonly SideCallRule[]
  /** Folders the CLI leaves in a workspace; excluded from patches. */
  readonly workspaceLitter: readonly string[]
}
