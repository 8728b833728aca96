// The patch flow that graders of a repository share: extract what the agent changed, filter it, apply it in a fresh copy.
// Bytes throughout; every limit is capped by what is left of the evaluation's budget.

import { join } from 'node:path'
import { z } from 'zod'
import { RolloutError } from '../domain/errors.js'
import type { ExecRequest, ExecResult, Runtime } from '../runtimes/base.js'
import type { EvaluatorContext } from './base.js'
import { DEFAULT_EXCLUDES, type DiffSection, diffSections, pathMatcher } from './shared/diff.js'
import { BASE_COMMAND, extractCommand, UNTRACKED_COMMAND } from './shared/git-commands.js'

const PATCH_LIMIT_BYTES = 64 * 1_048_576
const APPLY_OUTPUT = 8_000
const PATCH_HEAD = 4_000

const notBlank = z.string().refine(text => text.trim() !== '', 'must not be blank')

/** Config that patch graders share (contract 10.2). Times in seconds. */
export const patchSettings = {
  repo_dir: notBlank.nullish(),
  patch_command: notBlank.nullish(),
  apply_timeout: z.number().positive().default(60),
  test_timeout: z.number().positive().default(1_200),
  exclude_patterns: z.array(z.string().min(1)).default([]),
}

export interface PatchSettings {
  readonly repo_dir?: string | null | undefined
  readonly patch_command?: string | null | undefined
  readonly apply_timeout: number
  readonly exclude_patterns: readonly string[]
}

export interface ExtractedPatch {
  /** Filtered. */
  readonly bytes: Buffer
  readonly sections: readonly DiffSection[]
  readonly excluded: readonly string[]
  /** Relative to the session folder. */
  readonly path: string
}

export interface AppliedPatch {
  readonly applied: boolean
  /** `git apply`, or `patch` where that failed. */
  readonly by: 'git apply' | 'patch'
  /** End of the output. */
  readonly output: string
}

/** Where the repository lies: the workspace itself for runtime `local`, else the contract's own default. */
export const repoDir = (settings: PatchSettings, context: EvaluatorContext): string =>
  settings.repo_dir ?? (context.runtimeSpec.backend === 'local' ? '.' : '/testbed')

/** Runs commands inside the evaluation's budget; one that runs into it is EVAL_TIMEOUT. */
export class EvaluationCommands {
  readonly #context: EvaluatorContext
  readonly #endsAt: number

  constructor(context: EvaluatorContext) {
    this.#context = context
    this.#endsAt = context.clock.now() + context.timeoutMs
  }

  /** `limitMs`: the command's own limit. Throws EVAL_TIMEOUT, and EVAL_FAILED when cancelled. */
  async run(
    runtime: Runtime,
    what: string,
    request: Omit<ExecRequest, 'env' | 'timeoutMs'>,
    limitMs: number,
  ): Promise<ExecResult> {
    const { clock, env, signal } = this.#context
    const timeoutMs = Math.min(limitMs, this.#endsAt - clock.now())
    if (timeoutMs <= 0) throw new RolloutError('EVAL_TIMEOUT', `${what}: no time left of the evaluation's budget`)
    const result = await runtime.exec({ ...request, env, timeoutMs }, { signal })
    if (result.timedOut) {
      throw new RolloutError('EVAL_TIMEOUT', `${what} ran into its limit of ${Math.round(timeoutMs / 1_000)} s`)
    }
    if (result.cancelled) throw new RolloutError('EVAL_FAILED', `${what} was cancelled`)
    return result
  }
}

/**
 * What the agent changed, from its own runtime, whose processes are gone. Saved as `patch.diff` (with the command's stderr
 * beside it). Throws EVAL_FAILED when the command fails, EVAL_TIMEOUT when it does not end.
 */
export async function extractPatch(
  settings: PatchSettings,
  context: EvaluatorContext,
  commands: EvaluationCommands,
  pristine: Runtime | null,
): Promise<ExtractedPatch> {
  const { runtime } = context
  if (runtime === null) throw new RolloutError('EVAL_FAILED', 'there is no runtime of the agent to take a patch from')
  const cwd = repoDir(settings, context)
  const limitMs = settings.apply_timeout * 1_000
  const command = settings.patch_command ?? extractCommand(pristine && (await baseOf(pristine, cwd, commands, limitMs)))
  const raw = join(context.artifactsDir, 'patch.raw.diff')
  await runtime.writeFile(raw, '')
  const errors = join(context.artifactsDir, 'patch.stderr.log')
  const result = await commands.run(
    runtime,
    'the patch command',
    { command, cwd, stdoutPath: raw, stderrPath: errors },
    limitMs,
  )
  if (result.returnCode !== 0) {
    throw new RolloutError(
      'EVAL_FAILED',
      `the patch command exited with ${result.returnCode}: ${result.stderr.slice(-500)}`,
    )
  }
  if (result.unwrittenBytes > 0) throw new RolloutError('EVAL_FAILED', 'the patch is larger than an output file may be')
  const bytes = Buffer.from((await runtime.readFile(raw, PATCH_LIMIT_BYTES + 1)) ?? [])
  if (bytes.length > PATCH_LIMIT_BYTES) {
    throw new RolloutError('EVAL_FAILED', `the patch is larger than ${PATCH_LIMIT_BYTES} bytes`)
  }
  const isExcluded = pathMatcher([...DEFAULT_EXCLUDES, ...context.workspaceLitter, ...settings.exclude_patterns])
  const all = diffSections(bytes)
  const sections = all.filter(section => !isExcluded(section.path))
  const kept = Buffer.concat(sections.map(section => section.bytes))
  await runtime.writeFile(join(context.artifactsDir, 'patch.diff'), kept)
  const excluded = all.filter(section => isExcluded(section.path)).map(section => section.path)
  return { bytes: kept, sections, excluded, path: 'artifacts/patch.diff' }
}

/** Applies in `fresh`. A patch that does not fit is an outcome; git's exit code and a reverse check decide. */
export async function applyPatch(
  patch: ExtractedPatch,
  settings: PatchSettings,
  context: EvaluatorContext,
  commands: EvaluationCommands,
  fresh: Runtime,
): Promise<AppliedPatch> {
  const cwd = repoDir(settings, context)
  const limitMs = settings.apply_timeout * 1_000
  const file = join(fresh.handle.sessionDir, 'patch.diff')
  await fresh.writeFile(file, patch.bytes)
  await removeInTheWay(patch, cwd, commands, fresh, limitMs)
  const git = ['git', 'apply', '--verbose', '--whitespace=nowarn', file]
  const applied = await commands.run(fresh, 'git apply', { command: git, cwd }, limitMs)
  if (applied.returnCode === 0) {
    const check = ['git', 'apply', '--reverse', '--check', '--whitespace=nowarn', file]
    const checked = await commands.run(fresh, 'the check of git apply', { command: check, cwd }, limitMs)
    return { applied: checked.returnCode === 0, by: 'git apply', output: outputOf(applied) }
  }
  const command = ['patch', '--batch', '--fuzz=5', '-p1', '-i', file]
  const second = await commands.run(fresh, 'patch', { command, cwd }, limitMs)
  return {
    applied: second.returnCode === 0,
    by: 'patch',
    output: `${outputOf(applied)}\n${outputOf(second)}`.slice(-APPLY_OUTPUT),
  }
}

/** Metadata of a patch: where it lies and its beginning. */
export const patchMetadata = (patch: ExtractedPatch) => ({
  patch_path: patch.path,
  patch_bytes: patch.bytes.length,
  patch_files: patch.sections.map(section => section.path).slice(0, 100),
  patch_excluded: patch.excluded.slice(0, 100),
  patch_head: patch.bytes.toString('utf8').slice(0, PATCH_HEAD),
})

const outputOf = ({ stdout, stderr }: ExecResult): string => `${stdout}${stderr}`.slice(-APPLY_OUTPUT)

/** null when the fresh copy is no repository: then the agent's own HEAD is the base. */
async function baseOf(
  fresh: Runtime,
  cwd: string,
  commands: EvaluationCommands,
  limitMs: number,
): Promise<string | null> {
  const result = await commands.run(fresh, 'git rev-parse', { command: BASE_COMMAND, cwd }, limitMs)
  const hash = result.stdout.trim()
  return result.returnCode === 0 && /^[0-9a-f]{40,64}$/.test(hash) ? hash : null
}

/** Files that preparing left untracked in both copies come in the patch as new: the fresh one's give way. */
async function removeInTheWay(
  patch: ExtractedPatch,
  cwd: string,
  commands: EvaluationCommands,
  fresh: Runtime,
  limitMs: number,
): Promise<void> {
  const added = new Set(patch.sections.filter(section => section.isNew).map(section => section.path))
  if (added.size === 0) return
  const listed = await commands.run(fresh, 'git ls-files', { command: UNTRACKED_COMMAND, cwd }, limitMs)
  const inTheWay = listed.stdout.split('\0').filter(path => added.has(path))
  for (let start = 0; start < inTheWay.length; start += 100) {
    const command = ['rm', '-f', '--', ...inTheWay.slice(start, start + 100)]
    await commands.run(fresh, 'rm', { command, cwd }, limitMs)
  }
}
