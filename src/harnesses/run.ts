// Runs a preset in a prepared runtime: files, setup, steps, postprocess, inside the smaller of two budgets. A harness that
// fails or runs out of time is an outcome; only a runtime that breaks (a refused path, a full disk) throws.

import { join } from 'node:path'
import type { Clock } from '../domain/clock.js'
import type { AgentResult, SessionSpec } from '../domain/session.js'
import type { ExecResult, ProcessStarted, Runtime } from '../runtimes/base.js'
import { commandPath, type EnvironmentStage, sessionLayout, stageEnvironment } from '../runtimes/environment.js'
import type { HarnessInput, HarnessPreset, HarnessRun, HarnessStep } from './base.js'
import { type InstalledHarness, readInstalled } from './install.js'

export type AgentStage = 'setup' | 'exec' | 'postprocess'

export interface HarnessRunInput {
  readonly runtime: Runtime
  readonly preset: HarnessPreset
  readonly spec: SessionSpec
  /** Model port of the session, without `/v1`. */
  readonly gatewayUrl: string
  readonly sessionKey: string
  /** `cacheDir/harnesses/<id>@<version>`; null for `shell`. */
  readonly installDir: string | null
  /** Tokens; null = not known. */
  readonly contextWindow: number | null
  /** PATH of the service. */
  readonly basePath: string
  /** What is left of the session's budget, milliseconds. */
  readonly sessionBudgetMs: number
  /** `metadata.agent_timeout`, milliseconds; null = none. The smaller budget decides, a tie counts as the session's. */
  readonly agentBudgetMs: number | null
  readonly clock: Clock
  readonly signal?: AbortSignal
  readonly onStage?: (stage: AgentStage) => void
  readonly onProcess?: (started: ProcessStarted) => void
}

export interface HarnessRunResult {
  readonly agentResult: AgentResult
  readonly cancelled: boolean
  /** Milliseconds; a stage that was not reached is absent. */
  readonly timing: {
    agent_setup_ms?: number
    agent_exec_ms?: number
    agent_postprocess_ms?: number
  }
}

export async function runHarness(input: HarnessRunInput): Promise<HarnessRunResult> {
  return await new Run(input, input.installDir === null ? null : await readInstalled(input.installDir)).toEnd()
}

class Run {
  readonly #input: HarnessRunInput
  readonly #installed: InstalledHarness | null
  readonly #endsAt: number
  readonly #source: 'agent' | 'session'
  readonly #timing: HarnessRunResult['timing'] = {}
  readonly #notes: Record<string, string> = {}
  #step = 0
  #lastCode = 0

  constructor(input: HarnessRunInput, installed: InstalledHarness | null) {
    const { sessionBudgetMs, agentBudgetMs, clock } = input
    this.#input = input
    this.#installed = installed
    this.#source = agentBudgetMs !== null && agentBudgetMs < sessionBudgetMs ? 'agent' : 'session'
    this.#endsAt = clock.now() + Math.min(sessionBudgetMs, agentBudgetMs ?? sessionBudgetMs)
  }

  async toEnd(): Promise<HarnessRunResult> {
    const { preset } = this.#input
    const prepared = await this.#timed('setup', async () => {
      const run = preset.prepare(await this.#harnessInput())
      await this.#writeFiles(run)
      return { run, failure: await this.#steps(run, run.setup, 'setup', 'setup') }
    })
    const { run } = prepared
    if (prepared.failure) return this.#result(prepared.failure)
    if (this.#over()) return this.#result(this.#timeout('exec'))
    const ended = await this.#timed('exec', () => this.#steps(run, run.steps, 'run', 'exec'))
    if (ended && ended.status !== 'failed') return this.#result(ended)
    const late = await this.#timed('postprocess', () => this.#postprocess(run))
    return this.#result(ended ?? late ?? { status: 'completed', returnCode: this.#lastCode, error: null, stage: null })
  }

  async #harnessInput(): Promise<HarnessInput> {
    const { runtime, spec, preset, gatewayUrl, sessionKey, contextWindow, installDir } = this.#input
    const { handle } = runtime
    const instructionFile = join(handle.sessionDir, 'instruction.txt')
    await runtime.writeFile(instructionFile, spec.instruction, 0o600)
    return {
      instruction: spec.instruction,
      instructionFile,
      gatewayUrl,
      sessionKey,
      model: spec.agent.model_name ?? preset.defaultModel,
      agent: spec.agent,
      homeDir: handle.homeDir,
      workspaceDir: handle.workspaceDir,
      logsDir: sessionLayout(handle.sessionDir).agentLogDir,
      contextWindow,
      installDir,
    }
  }

  async #writeFiles(run: HarnessRun): Promise<void> {
    for (const file of run.files) await this.#input.runtime.writeFile(file.path, file.content, file.mode ?? 0o600)
    for (const upload of run.uploads) await this.#input.runtime.upload(upload.source, upload.target)
  }

  /** null = all went well. */
  async #steps(
    run: HarnessRun,
    steps: readonly HarnessStep[],
    stage: EnvironmentStage,
    label: AgentStage,
  ): Promise<Ended | null> {
    for (const step of steps) {
      if (this.#over()) return this.#timeout(label)
      const result = await this.#exec(run, step, stage)
      if (result.cancelled) return { status: 'cancelled', returnCode: -1, error: 'cancelled', stage: null }
      if (result.timedOut) return this.#timeout(label)
      this.#lastCode = result.returnCode
      const error = label === 'exec' ? this.#verdict(result) : codeError(result)
      if (error !== null) return { status: 'failed', returnCode: result.returnCode, error, stage: null }
    }
    return null
  }

  async #postprocess(run: HarnessRun): Promise<Ended | null> {
    for (const step of run.postprocess) {
      if (this.#over()) return this.#timeout('postprocess')
      const result = await this.#exec(run, step, 'postrun')
      if (result.timedOut) return this.#timeout('postprocess')
      const error = codeError(result)
      if (error !== null) this.#notes['postprocess_error'] = error
    }
    return null
  }

  async #exec(run: HarnessRun, step: HarnessStep, stage: EnvironmentStage): Promise<ExecResult> {
    const { runtime, preset, spec, clock, signal, onProcess } = this.#input
    const logs = sessionLayout(runtime.handle.sessionDir).agentLogDir
    const name = join(logs, `step.${String(this.#step++).padStart(2, '0')}`)
    const cwd = step.cwd ?? spec.runtime.workdir
    return await runtime.exec(
      {
        command: step.command,
        ...(cwd !== null && { cwd }),
        env: this.#environment(run, step, stage),
        timeoutMs: this.#endsAt - clock.now(),
        ...(step.stdin !== undefined && { stdin: step.stdin }),
        stdoutPath: `${name}.stdout.log`,
        stderrPath: `${name}.stderr.log`,
        ...(preset.logName !== null && { combinedPath: join(logs, preset.logName) }),
      },
      { ...(signal && { signal }), ...(onProcess && { onProcess }) },
    )
  }

  #environment(run: HarnessRun, step: HarnessStep, stage: EnvironmentStage): Readonly<Record<string, string>> {
    const { spec, basePath, gatewayUrl, sessionKey, runtime } = this.#input
    const env = stageEnvironment({
      stage,
      sessionId: spec.sessionId,
      taskId: spec.taskId,
      runtime: spec.runtime,
      agent: spec.agent,
      evaluator: null,
      gateway: { url: gatewayUrl, key: sessionKey },
      stepEnv: {
        ...run.env,
        ...step.env,
        POLAR_INSTRUCTION_FILE: join(runtime.handle.sessionDir, 'instruction.txt'),
      },
    })
    const first = this.#installed?.nodeBinDir
    return first ? { ...env, PATH: commandPath(env['PATH'] ?? basePath, [first]) } : env
  }

  #verdict(result: ExecResult): string | null {
    const { preset } = this.#input
    return preset.judge && result.signal === null ? preset.judge(result) : codeError(result)
  }

  #over(): boolean {
    return this.#input.clock.now() >= this.#endsAt
  }

  #timeout(stage: AgentStage): Ended {
    return { status: 'timeout', returnCode: -1, error: `${this.#source} execution timeout`, stage }
  }

  async #timed<T>(stage: AgentStage, work: () => Promise<T>): Promise<T> {
    const { clock, onStage } = this.#input
    onStage?.(stage)
    const startedAt = clock.now()
    try {
      return await work()
    } finally {
      this.#timing[`agent_${stage}_ms`] = clock.now() - startedAt
    }
  }

  #result(ended: Ended): HarnessRunResult {
    const { status, returnCode, error, stage } = ended
    return {
      agentResult: {
        status: status === 'cancelled' ? 'failed' : status,
        returnCode,
        error,
        timeoutSource: status === 'timeout' ? this.#source : null,
        timeoutStage: status === 'timeout' ? stage : null,
        harnessVersion: this.#installed?.version ?? null,
        metadata: this.#notes,
      },
      cancelled: status === 'cancelled',
      timing: this.#timing,
    }
  }
}

interface Ended {
  readonly status: 'completed' | 'failed' | 'timeout' | 'cancelled'
  readonly returnCode: number | null
  readonly error: string | null
  readonly stage: AgentStage | null
}

function codeError(result: ExecResult): string | null {
  if (result.returnCode === 0) return null
  const output = (result.stderr.trim() || result.stdout.trim()).slice(-2_000)
  return `the harness exited with ${result.returnCode}${output && `: ${output}`}`
}
