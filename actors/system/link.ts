// Links between the actor systems of threads, each over one MessagePort. A hub (main) is linked to every thread; a thread has one
// link, its uplink, and reaches the other threads through the hub. Must hold: when a link ends, every watcher of an actor behind
// it is told `thread-died` and every question behind it fails with ACTOR_DEAD.
//
// A port has no back-pressure: the limit is the mailbox at the far end, which refuses; bulk data (captures) has its own port and credit.
// What was posted to a thread that dies before reading it is lost with the thread, like a message being handled.

import type { MessagePort } from 'node:worker_threads'
import type { ErrorData } from '../../src/domain/errors.js'
import { EVENTS } from '../../src/observability/events.js'
import { isAddress } from './address.js'
import type { Logger, TerminatedReason } from './behavior.js'
import type { DeadLetterReason } from './dead-letters.js'
import { type Envelope, open, seal } from './envelope.js'
import type { ActorRef, Address, AnyMessage } from './ref.js'
import { isTransferred, ownedBuffers } from './transfer.js'

/** What goes over a link. `to` routes it; `system-ended` is from the hub to all. */
type Packet =
  | { readonly kind: 'tell'; readonly to: Address; readonly envelope: Envelope; readonly transfer: boolean }
  | { readonly kind: 'ask-failed'; readonly to: Address; readonly error: ErrorData }
  | { readonly kind: 'watch' | 'unwatch'; readonly to: Address; readonly by: string }
  | { readonly kind: 'terminated'; readonly to: Address; readonly target: Address; readonly reason: TerminatedReason }
  | { readonly kind: 'system-ended'; readonly to: Address; readonly system: string }

export interface LinkOptions {
  /** Owned by the link from here on. */
  readonly port: MessagePort
  /** Name of the system at the far end. */
  readonly peer: string
  /** Also the way to every system that has no link of its own. */
  readonly uplink?: boolean
}

export interface Link {
  readonly peer: string
  /** Closes the port and counts the far end as dead. Idempotent; also happens by itself when the port closes. */
  end(): void
}

export interface LinkHost {
  readonly system: string
  readonly log: Logger
  refOf(address: Address): ActorRef<AnyMessage>
  hasActor(path: string): boolean
  deliver(address: Address, message: AnyMessage): void
  failAsk(path: string, error: ErrorData): void
  undeliverable(address: Address, message: AnyMessage, reason: DeadLetterReason): void
  /** An actor elsewhere has ended. */
  terminated(target: Address, reason: TerminatedReason): void
  systemEnded(system: string): void
}

export interface Links {
  connect(options: LinkOptions): Link
  tell(to: Address, message: AnyMessage): void
  failAsk(to: Address, error: ErrorData): void
  watch(target: Address): void
  unwatch(target: Address): void
  /** An actor here has ended. */
  ended(target: Address, reason: TerminatedReason): void
  peers(): readonly string[]
  endAll(): void
}

export function createLinks(host: LinkHost): Links {
  const ports = new Map<string, MessagePort>()
  const ends = new Map<string, () => void>()
  let uplink: string | null = null
  const died = new Set<string>()
  /** Path of an actor here -> systems that watch it. */
  const watchedBy = new Map<string, Set<string>>()

  const portTo = (system: string) => ports.get(system) ?? (uplink === null ? undefined : ports.get(uplink))
  const addressOf = (system: string): Address => ({ system, path: '/' })

  const post = (port: MessagePort, packet: Packet): void => {
    port.postMessage(
      packet,
      packet.kind === 'tell' && packet.transfer ? [...ownedBuffers(packet.envelope.message)] : [],
    )
  }
  /** False when there is no way to the system. */
  const send = (packet: Packet): boolean => {
    const port = portTo(packet.to.system)
    if (port === undefined) return false
    post(port, packet)
    return true
  }

  const tell = (to: Address, message: AnyMessage): void => {
    const packet: Packet = { kind: 'tell', to, envelope: seal(message), transfer: isTransferred(message) }
    try {
      if (!send(packet)) host.undeliverable(to, message, died.has(to.system) ? 'thread-died' : 'unknown-address')
    } catch (cause) {
      host.log.debug(EVENTS.linkSendFail, { type: message.type, cause })
      host.undeliverable(to, message, 'unserialisable')
    }
  }

  const refuse = (packet: Packet): void => {
    const { to } = packet
    const reason = died.has(to.system) ? 'thread-died' : 'unknown-address'
    if (packet.kind === 'watch') send({ kind: 'terminated', to: addressOf(packet.by), target: to, reason })
    if (packet.kind !== 'tell') return
    if (open(packet.envelope, host.refOf)) host.undeliverable(to, packet.envelope.message, reason)
    else host.undeliverable(to, packet.envelope.message, 'malformed')
  }

  const handle = (packet: Packet): void => {
    const { to } = packet
    switch (packet.kind) {
      case 'tell':
        if (!open(packet.envelope, host.refOf)) host.undeliverable(to, { type: 'malformed' }, 'malformed')
        else host.deliver(to, packet.envelope.message)
        break
      case 'ask-failed':
        host.failAsk(to.path, packet.error)
        break
      case 'watch':
        if (host.hasActor(to.path)) watchedBy.set(to.path, (watchedBy.get(to.path) ?? new Set()).add(packet.by))
        else send({ kind: 'terminated', to: addressOf(packet.by), target: to, reason: 'unknown-address' })
        break
      case 'unwatch':
        removeWatcher(to.path, packet.by)
        break
      case 'terminated':
        host.terminated(packet.target, packet.reason)
        break
      case 'system-ended':
        systemEnded(packet.system)
        break
    }
  }

  const receive = (peer: string, data: unknown): void => {
    if (!isPacket(data)) host.undeliverable(addressOf(host.system), { type: 'malformed' }, 'malformed')
    else if (data.to.system === host.system) handle(data)
    else {
      // Never back where it came from, and never up: a packet for nobody must not go round in circles.
      const port = data.to.system === peer ? undefined : ports.get(data.to.system)
      if (port === undefined) refuse(data)
      else post(port, data)
    }
  }

  const removeWatcher = (path: string, system: string) => {
    const systems = watchedBy.get(path)
    systems?.delete(system)
    if (systems?.size === 0) watchedBy.delete(path)
  }

  const systemEnded = (system: string): void => {
    for (const path of [...watchedBy.keys()]) removeWatcher(path, system)
    host.systemEnded(system)
  }

  return {
    connect({ port, peer, uplink: isUplink = false }) {
      ends.get(peer)?.()
      ports.set(peer, port)
      died.delete(peer)
      if (isUplink) uplink = peer
      const end = () => {
        if (ports.get(peer) !== port) return
        ports.delete(peer)
        ends.delete(peer)
        died.add(peer)
        if (uplink === peer) uplink = null
        port.close()
        host.log.debug(EVENTS.linkEnd, { peer })
        systemEnded(peer)
        for (const [other, otherPort] of ports)
          post(otherPort, { kind: 'system-ended', to: addressOf(other), system: peer })
      }
      ends.set(peer, end)
      port.on('message', data => {
        try {
          receive(peer, data)
        } catch (cause) {
          // Thrown on, it would end this thread for what another one sent.
          host.log.error(EVENTS.linkReceiveFail, { peer, cause })
          host.undeliverable(addressOf(host.system), { type: 'malformed' }, 'malformed')
        }
      })
      port.on('messageerror', () => host.undeliverable(addressOf(host.system), { type: 'malformed' }, 'malformed'))
      port.on('close', end)
      host.log.debug(EVENTS.linkOpen, { peer })
      return { peer, end }
    },
    tell,
    failAsk: (to, error) => void send({ kind: 'ask-failed', to, error }),
    watch(target) {
      if (send({ kind: 'watch', to: target, by: host.system })) return
      const reason = died.has(target.system) ? 'thread-died' : 'unknown-address'
      queueMicrotask(() => host.terminated(target, reason))
    },
    unwatch: target => void send({ kind: 'unwatch', to: target, by: host.system }),
    ended(target, reason) {
      for (const system of watchedBy.get(target.path) ?? [])
        send({ kind: 'terminated', to: addressOf(system), target, reason })
      watchedBy.delete(target.path)
    },
    peers: () => [...ports.keys()],
    endAll() {
      for (const end of [...ends.values()]) end()
    },
  }
}

const KINDS: readonly string[] = ['tell', 'ask-failed', 'watch', 'unwatch', 'terminated', 'system-ended']

/** The far end is our own code: kind, route and envelope are checked, the rest is trusted. */
function isPacket(data: unknown): data is Packet {
  if (typeof data !== 'object' || data === null) return false
  const { kind, to, envelope } = data as { kind?: unknown; to?: unknown; envelope?: Partial<Envelope> }
  if (typeof kind !== 'string' || !KINDS.includes(kind) || !isAddress(to)) return false
  if (kind !== 'tell') return true
  return typeof envelope?.message?.type === 'string' && Array.isArray(envelope.refs)
}
