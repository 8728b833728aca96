// Plan -> running system: starts the supervision tree in the order of tree.ts, and stops it in reverse. As a library or under
// src/cli/serve.ts, which adds signals. Whoever starts it stops it.

import type { TaskPlugins } from '../src/api/plugins.js'
import { referencesAt } from '../src/api/result-routes.js'
import { resultBinary, resultJson } from '../src/api/stored-result.js'
import { builders } from '../src/builders/registry.js'
import { inferenceFile } from '../src/config/inference-file.js'
import type { Plan } from '../src/config/plan.js'
import {
  claimSessionsFolder,
  controlToken,
  makeFolder,
  removeEndpoint,
  writeEndpoint,
} from '../src/config/state-dir.js'
import { type ErrorData, errorData, errorFromData, RolloutError } from '../src/domain/errors.js'
import { gateOf } from '../src/domain/inference.js'
import { evaluators } from '../src/evaluators/registry.js'
import { harnesses } from '../src/harnesses/registry.js'
import { createHttpClient } from '../src/http/client.js'
import { EVENTS } from '../src/observability/events.js'
import { armFailpoint, failpoint } from '../src/observability/failpoints.js'
import type { LogLevel } from '../src/observability/logger.js'
import { runtimePlugins } from '../src/runtimes/registry.js'
import { type ControlStore, openControlStore } from '../src/store/control-store.js'
import { lockStore } from '../src/store/lock.js'
import { callbackProps } from './callback/actor.js'
import { controlProps } from './control/actor.js'
import { createSystem, type System } from './index.js'
import { inferenceProps } from './inference/actor.js'
import { openStagePools } from './pools/stage-pools.js'
import { runtimeDepsOf } from './pools/task.js'
import { proberProps } from './prober/actor.js'
import { upstreamStandings } from './prober/standings.js'
import type { CallbackMessage } from './protocol/callback.js'
import type { ControlMessage } from './protocol/control.js'
import type { ProberMessage } from './protocol/prober.js'
import type { ProxyMessage } from './protocol/proxy.js'
import type { RolloutMessage } from './protocol/rollout.js'
import { reaperProps } from './reaper/actor.js'
import { rolloutProps } from './rollout/actor.js'
import { type DrainReport, drainService } from './service-drain.js'
import { controlPorts } from './service-ports.js'
import { sessionStarter } from './service-sessions.js'
import { withSimulation } from './service-simulation.js'
import { stagesLimitsOf, stagesProps } from './stages/actor.js'
import type { ActorClock, Logger } from './system/behavior.js'
import { realClock } from './system/clock.js'
import type { SystemInspection } from './system/inspect.js'
import type { Address } from './system/ref.js'
import { pairThreads } from './threads/pair.js'
import { PROBER_ADDRESS, proxyAddress, START_MS } from './threads/pair-names.js'

export interface ServiceOptions {
  /** Default: real time. */
  readonly clock?: ActorClock
  /** `inline`: pair and simulation run in this thread. The pools of stages are always threads. */
  readonly threads?: 'real' | 'inline'
  /** Default: JSON lines on stderr from `logLevel` up. */
  readonly log?: Logger
  readonly logLevel?: LogLevel
  /** `passing`: for one run (quickstart, try): no task outlives this service, and those that another has left stay where they are. */
  readonly tasks?: 'kept' | 'passing'
}

export interface Service {
  /** The plan as it runs: the simulation's URL filled in. */
  readonly plan: Plan
  readonly controlUrl: string
  /** Base URL of the first model port. */
  readonly gatewayUrl: string
  readonly token: string
  /** null = the token was configured. */
  readonly tokenFile: string | null
  readonly system: System
  /** Ends that thread at once, like a crash: `proxy-1`, `merge-1`, `simulation`, or `init-1`, `running-1`, `postrun-1` of the pools. */
  kill(thread: string): void
  /** Takes no more tasks, lets running sessions end, cancels what runs at two thirds of `deadlineMs` (default `limits.drain`). */
  drain(deadlineMs?: number): Promise<DrainReport>
  /** Stops everything; `missed`: who did not stop in time. Idempotent. */
  stop(deadlineMs?: number): Promise<{ readonly missed: readonly Address[] }>
  inspect(): SystemInspection
  /** Settles when an actor failed for good: the service should be stopped. Never rejects. */
  readonly failed: Promise<ErrorData>
}

const MAIN = 'main'
/** Of a task that was cancelled before its submission (contract 4.10). */
const TOMBSTONE_MS = 300_000
const TOMBSTONES = 10_000
const REAPER_EVERY_MS = 60_000
/** How long a pool task may take to stop before it is stopped by force. */
const STAGE_STOP_MS = 5_000
const STOP_MS = 60_000
const CALLBACKS_AT_ONCE = 16
/** Bound of the control store: results go to files where `saveDir` is set, so it holds little else than tasks. */
const CONTROL_STORE_BYTES = 8 * 2 ** 30

/** Rejects with the error of whatever could not be started; what had been started is stopped then. */
export async function startService(given: Plan, options: ServiceOptions = {}): Promise<Service> {
  const { clock = realClock(), threads = 'real', log, logLevel, tasks = 'kept' } = options
  armFailpoint(given.failpoint)
  makeFolder(given.stateDir)
  makeFolder(given.cacheDir)
  const { token, file: tokenFile } = controlToken(given)
  // A passing service may run beside the one that holds the stateDir: its records live and die with it.
  const lock = tasks === 'kept' ? lockStore(given.stateDir) : null
  const folder = claimSessionsFolder(given.stateDir)
  const store = await openControlStore({ stateDir: given.stateDir, maxBytes: CONTROL_STORE_BYTES, tasks }).catch(
    cause => {
      folder.release()
      lock?.release()
      throw cause
    },
  )
  let fail: (error: ErrorData) => void = () => undefined
  const failed = new Promise<ErrorData>(resolve => {
    fail = resolve
  })
  const system = createSystem({
    plan: given,
    clock,
    threads,
    ...(log && { log }),
    ...(logLevel && { logLevel }),
    onFailure: error => fail(error),
  })
  let stopping: ReturnType<Service['stop']> | null = null
  const stop = (deadlineMs = STOP_MS) => {
    stopping ??= system.stop(deadlineMs).finally(async () => {
      // Opened first, closed last: whatever ends may still have something to keep.
      await store.close()
      removeEndpoint(given.stateDir, process.pid)
      folder.release()
      lock?.release()
    })
    return stopping
  }
  try {
    const started = await startTree(tasks === 'kept' ? given : withoutStore(given), {
      system,
      clock,
      token,
      store,
      sessionsDir: folder.path,
    })
    writeEndpoint(given.stateDir, { url: started.controlUrl, pid: process.pid })
    return { ...started, token, tokenFile, system, stop, inspect: () => system.inspect(), failed }
  } catch (cause) {
    await stop()
    throw cause
  }
}

function withoutStore(plan: Plan): Plan {
  const { store: _, ...rest } = plan
  return rest
}

interface TreeInput {
  readonly system: System
  readonly clock: ActorClock
  readonly token: string
  readonly store: ControlStore
  readonly sessionsDir: string
}

type Started = Pick<Service, 'plan' | 'controlUrl' | 'gatewayUrl' | 'kill' | 'drain'>

async function startTree(given: Plan, { system, clock, token, store, sessionsDir }: TreeInput): Promise<Started> {
  const plan = await withSimulation(given, system)
  const { limits } = plan
  const mailbox = limits.mailbox
  const rolloutRef = system.refOf<RolloutMessage>({ system: MAIN, path: '/rollout/' })
  const controlRef = system.refOf<ControlMessage>({ system: MAIN, path: '/control/' })
  const callbackRef = system.refOf<CallbackMessage>({ system: MAIN, path: '/callback/' })

  const sessions = sessionStarter({ plan, clock, sessionsDir, system, stopMs: STAGE_STOP_MS })
  const memory = inferenceFile(sessionsDir)
  let gatewayPort = 0
  const standings = upstreamStandings(plan)
  const proberRef = system.refOf<ProberMessage>(PROBER_ADDRESS)
  for (let number = 1; number <= plan.gateway.proxies; number += 1) {
    const port = plan.gateway.port === 0 ? 0 : plan.gateway.port + number - 1
    const { replies } = await system.startThreads(`pair-${number}`, {
      ...pairThreads(
        plan,
        number,
        port,
        () => gateOf(memory.read()),
        () => standings.obstacles(),
      ),
      onRestarted: names => {
        // The next one says so again if it cannot write either.
        if (names.includes(`merge-${number}`)) rolloutRef.tell({ type: 'intake-set', pair: number, error: null })
        sessions.pairRestarted(number, names)
        // A standing that changed while the thread started has not reached it.
        proberRef.tell({ type: 'publish-requested' })
      },
    })
    if (number === 1) gatewayPort = Number(replies['proxy-1']?.['port'] ?? 0)
  }
  const proxies = Array.from({ length: plan.gateway.proxies }, (_, index) =>
    system.refOf<ProxyMessage>(proxyAddress(index + 1)),
  )
  const inference = system.spawn(inferenceProps({ proxies, memory }, mailbox), 'inference')
  const gatewayUrl = plan.gateway.publicUrl ?? `http://${plan.gateway.host}:${gatewayPort}`

  system.spawn(
    proberProps({
      upstreams: plan.upstreams.filter(({ probe }) => probe === 'start'),
      proxies,
      onStanding: standings.note,
      mailbox,
    }),
    'prober',
  )
  const reaper = system.spawn(
    reaperProps({
      sessionsDir,
      artifactsMs: plan.retention.artifactsMs,
      everyMs: REAPER_EVERY_MS,
      capacity: mailbox * 16,
    }),
    'reaper',
  )
  // What a killed predecessor left running is gone before any session of it is taken up, and before the first one begins.
  await system.ask(reaper, { type: 'sweep-requested' }, STOP_MS)
  failpoint('recovery.swept')
  const stages = system.spawn(
    stagesProps(stagesLimitsOf(plan), mailbox * 16, {
      openPools: onIdleDeath => openStagePools({ plan, onIdleDeath }),
      rollout: rolloutRef,
      runtimeDeps: runtimeDepsOf(plan),
      stopMs: STAGE_STOP_MS,
    }),
    'stages',
  )
  const callback = system.spawn(
    callbackProps({
      settings: {
        concurrency: CALLBACKS_AT_ONCE,
        capacity: mailbox,
        expiryMs: plan.budgets.callbackExpiryMs,
        firstWaitMs: 500,
        longestWaitMs: 60_000,
      },
      deps: {
        client: createHttpClient({ connections: 4 }),
        store,
        attemptMs: plan.budgets.callbackAttemptMs,
        token: plan.security.callbackToken ?? null,
        random: Math.random,
      },
      mailbox,
    }),
    'callback',
  )
  const { publicUrl, host, port } = plan.control
  // Of any port: known once it listens.
  let controlUrl = publicUrl ?? (port === 0 ? null : `http://${host}:${port}`)
  const encodeReference = referencesAt(() => controlUrl)
  const rollout = system.spawn(
    rolloutProps(
      {
        settings: {
          nodeId: plan.nodeId,
          queuedSessions: limits.queuedSessions,
          defaultRuntime: plan.defaultRuntime,
          retainedSessions: plan.retention.results,
          retainedMs: plan.retention.resultsMs,
          tombstoneMs: TOMBSTONE_MS,
          tombstones: TOMBSTONES,
        },
        saveDir: plan.saveDir,
        encode: resultJson,
        encodeBinary: resultBinary,
        encodeReference,
        callback: callbackRef,
        control: controlRef,
        store,
        now: () => clock.now(),
        ...sessions.starter(stages, reaper),
      },
      mailbox,
    ),
    'rollout',
  )
  let isDraining = false
  const control = system.spawn(
    controlProps({
      plan,
      plugins: taskPlugins(plan),
      auth: { token, openRoutes: plan.security.openRoutes },
      ports: controlPorts({
        system,
        plan,
        rollout,
        stages,
        inference,
        clock,
        gatewayUrl,
        isDraining: () => isDraining,
        standings,
      }),
      encode: resultJson,
      encodeBinary: resultBinary,
      encodeReference,
    }),
    'control',
  )
  const listening = await system.ask(control, { type: 'control-described' }, START_MS)
  if (listening.type === 'control-failed') throw cannotListen(plan, listening.error)
  controlUrl = listening.url
  system.log.info(EVENTS.serviceReady, { control: listening.url, gateway: gatewayUrl, sessionsDir })

  return {
    plan,
    controlUrl: listening.url,
    gatewayUrl,
    kill(thread) {
      const pool = /^(init|running|postrun)-(\d+)$/.exec(thread)
      if (pool === null) system.kill(thread)
      else stages.tell({ type: 'kill-pool-thread', pool: pool[1] as 'init', index: Number(pool[2]) })
    },
    drain(deadlineMs = limits.drainMs) {
      isDraining = true
      system.log.info(EVENTS.serviceDrain, { deadlineMs })
      return drainService({ system, rollout, callback, deadlineMs })
    },
  }
}

const taskPlugins = (plan: Plan): TaskPlugins => ({
  harnesses,
  runtimes: runtimePlugins(runtimeDepsOf(plan)),
  builders,
  evaluators,
})

function cannotListen({ control }: Plan, error: ErrorData): RolloutError {
  const taken = /EADDRINUSE/.test(error.message)
  return taken
    ? new RolloutError(
        'CONFIG_INVALID',
        `control.port ${control.port} of ${control.host} is in use; name another one, or 0 for any`,
      )
    : errorFromData(errorData(error))
}
