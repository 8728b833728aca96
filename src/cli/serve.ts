// `sextant serve` (the default command): runs the service until a signal. SIGTERM drains within limits.drain; SIGINT the same in less
// time; a second signal stops at once. Exit code 0 after an orderly end.

import { type Command, Option } from 'commander'
import type { Service } from '../../actors/service.js'
import { realClock } from '../../actors/system/clock.js'
import { shownPlan } from '../config/compile.js'
import { loadPlan } from '../config/load.js'
import type { Clock } from '../domain/clock.js'
import { EVENTS } from '../observability/events.js'
import { createLogger, type EventLogger, type LogLevel } from '../observability/logger.js'
import { upstreams } from '../upstreams/registry.js'

interface ServeFlags {
  readonly config?: string
  readonly checkConfig: boolean
  readonly exitWithParent: boolean
  readonly logLevel: LogLevel
}

/** Who presses Ctrl-C does not want to wait for long. */
const INTERRUPT_DRAIN_MS = 6_000
/** After a second signal: what killing the agents takes, and its proof. */
const FORCED_STOP_MS = 6_000
const PARENT_LOOK_MS = 1_000

export function serveCommand(program: Command): void {
  program
    .command('serve', { isDefault: true })
    .description('run the service')
    .option(
      '-c, --config <file>',
      'config file (JSON with comments); without one, defaults and the embedded simulation',
    )
    .option('--check-config', 'print the compiled plan and end', false)
    .option('--exit-with-parent', 'stop when the process that started this one is gone', false)
    .addOption(new Option('--log-level <level>').choices(['debug', 'info', 'warn', 'error', 'silent']).default('info'))
    .action(async (flags: ServeFlags) => {
      const plan = loadPlan({ path: flags.config ?? null, profiles: Object.keys(upstreams) })
      if (flags.checkConfig) return void console.log(JSON.stringify(shownPlan(plan), null, 2))
      const clock = realClock()
      const log = createLogger({ level: flags.logLevel, fields: { system: 'main' } })
      // Listening before anything is started: a signal during the start ends it too.
      const signals = stopSignals(flags.exitWithParent ? clock : null)
      // Loaded by who runs it only: it is most of the program, and `status` is asked often.
      const { startService } = await import('../../actors/service.js')
      const service = await startService(plan, { clock, threads: 'real', log, logLevel: flags.logLevel })
      console.log(readyLine(service))
      const reason = await Promise.race([signals.first, service.failed.then(() => 'failure' as const)])
      const code = await end(service, reason, signals.second, log)
      signals.close()
      // Whatever still holds the event loop was told to stop, and has had its time.
      process.exit(code)
    })
}

export function readyLine(service: Pick<Service, 'controlUrl' | 'gatewayUrl' | 'tokenFile'>): string {
  const token = service.tokenFile === null ? 'as configured' : `in ${service.tokenFile}`
  return `sextant is ready: control ${service.controlUrl}, models ${service.gatewayUrl}, control token ${token}`
}

type Reason = 'SIGTERM' | 'SIGINT' | 'failure'

async function end(service: Service, reason: Reason, second: Promise<unknown>, log: EventLogger): Promise<number> {
  const forced = second.then(() => 'forced' as const)
  const quick = Math.min(INTERRUPT_DRAIN_MS, service.plan.limits.drainMs)
  const draining = reason === 'failure' ? null : service.drain(reason === 'SIGINT' ? quick : undefined)
  const drained = await Promise.race([draining, forced])
  const stopping = drained === 'forced' ? service.stop(FORCED_STOP_MS) : service.stop()
  const late = forced.then(() => realClock().sleep(FORCED_STOP_MS)).then(() => null)
  const stopped = await Promise.race([stopping, late])
  const missed = stopped?.missed.map(address => `${address.system}:${address.path}`) ?? ['not known']
  log.info(EVENTS.serviceStop, { reason, drained, missed })
  return reason === 'failure' || drained === 'forced' || stopped === null ? 1 : 0
}

interface StopSignals {
  readonly first: Promise<'SIGTERM' | 'SIGINT'>
  readonly second: Promise<void>
  close(): void
}

/** `parentClock`: also stop, as after SIGINT, when the parent process is gone. */
function stopSignals(parentClock: Clock | null): StopSignals {
  let count = 0
  let tellFirst: (signal: 'SIGTERM' | 'SIGINT') => void = () => undefined
  let tellSecond: () => void = () => undefined
  const first = new Promise<'SIGTERM' | 'SIGINT'>(resolve => {
    tellFirst = resolve
  })
  const second = new Promise<void>(resolve => {
    tellSecond = resolve
  })
  const take = (signal: 'SIGTERM' | 'SIGINT') => {
    count += 1
    if (count === 1) tellFirst(signal)
    else tellSecond()
  }
  const onTerm = () => take('SIGTERM')
  const onInterrupt = () => take('SIGINT')
  process.on('SIGTERM', onTerm).on('SIGHUP', onTerm).on('SIGINT', onInterrupt)
  const watching = new AbortController()
  if (parentClock !== null) void watchParent(parentClock, watching.signal, () => tellFirst('SIGINT'))
  return {
    first,
    second,
    close() {
      watching.abort()
      process.off('SIGTERM', onTerm).off('SIGHUP', onTerm).off('SIGINT', onInterrupt)
    },
  }
}

async function watchParent(clock: Clock, signal: AbortSignal, gone: () => void): Promise<void> {
  const parent = process.ppid
  while (!signal.aborted) {
    if (process.ppid !== parent) return gone()
    await clock.sleep(PARENT_LOOK_MS, signal).catch(() => undefined)
  }
}
