// The way of one attempt to an engine: through the pause gate, then a slot of the session, then one of the upstream. A call that
// waits at the gate holds no slot, and its session's budget stands still meanwhile.

import { RolloutError } from '../../src/domain/errors.js'
import type { UpstreamTarget } from './models.js'
import type { ProxyServices } from './services.js'
import type { SessionEntry } from './sessions.js'
import type { Release } from './slots.js'

export interface Admission {
  /** `onHold` runs while the call waits at the gate; its signal fires when it goes on. */
  readonly onHold: (signal: AbortSignal) => Promise<void> | undefined
  readonly signal: AbortSignal
}

/** The right to call. Throws DIALECT_RATE_LIMITED when no slot came free in time, and the reason of the signal. */
export async function admitted(
  services: ProxyServices,
  entry: SessionEntry,
  upstream: UpstreamTarget,
  { onHold, signal }: Admission,
): Promise<Release> {
  const { gate, plan } = services
  for (;;) {
    if (gate.isClosed) await held(services, entry, onHold, signal)
    const { closing } = gate
    const releases: Release[] = []
    const free = () => {
      for (const release of releases.splice(0)) release()
    }
    try {
      signal.throwIfAborted()
      // Mostly there is room: no timer then, and no listeners.
      const [own, shared] = [entry.slots.take(), upstream.slots.take()]
      if (own !== null && shared !== null) releases.push(own, shared)
      else {
        own?.()
        shared?.()
        const waiting = deadline(services, plan.limits.admissionTimeoutMs, signal, closing)
        try {
          releases.push(await entry.slots.acquire(waiting.signal))
          releases.push(await upstream.slots.acquire(waiting.signal))
        } finally {
          waiting.end()
        }
      }
      const out = gate.pass()
      if (out !== null) {
        releases.unshift(out)
        return free
      }
      free()
    } catch (cause) {
      free()
      // Waiting for a slot is no work when the slots are given to nobody: back to the gate.
      if (signal.aborted || !closing.aborted) throw cause
    }
  }
}

async function held(
  { gate, clock }: ProxyServices,
  entry: SessionEntry,
  onHold: Admission['onHold'],
  signal: AbortSignal,
): Promise<void> {
  const waiting = new AbortController()
  const told = onHold(waiting.signal)
  entry.hold(clock.now())
  try {
    await gate.opened(signal)
  } finally {
    entry.unhold(clock.now())
    waiting.abort()
    await told
  }
}

/** A signal that follows others and fires by itself after `ms`. `end` takes it off them: they live longer than the wait. */
function deadline(
  { clock }: ProxyServices,
  ms: number,
  ...others: readonly AbortSignal[]
): { readonly signal: AbortSignal; end(): void } {
  const over = new AbortController()
  const timer = new AbortController()
  const followers = others.map(other => {
    const follow = () => over.abort(other.reason)
    if (other.aborted) follow()
    other.addEventListener('abort', follow, { once: true })
    return () => other.removeEventListener('abort', follow)
  })
  clock.sleep(ms, timer.signal).then(
    () => over.abort(new RolloutError('DIALECT_RATE_LIMITED', `no slot came free within ${ms} ms`)),
    () => {},
  )
  return {
    signal: over.signal,
    end() {
      timer.abort()
      for (const unfollow of followers) unfollow()
    },
  }
}
