// A small actor for tests of the kernel: counts what it is told, answers, crashes and ends on demand, and has children if asked to.

import { defer, EMPTY, type Observable, of } from 'rxjs'
import type { ActorContext, ActorProps, Behavior, Signal, TerminatedReason } from '../../actors/system/behavior.js'
import type { ActorRef, Address } from '../../actors/system/ref.js'

export type SampleMessage =
  | { readonly type: 'add'; readonly n: number }
  | { readonly type: 'total-requested'; readonly replyTo: ActorRef<Total> }
  /** Never answered. */
  | { readonly type: 'silence-requested'; readonly replyTo: ActorRef<Total> }
  | { readonly type: 'crash' }
  | { readonly type: 'finish' }
  | { readonly type: 'watch-other'; readonly other: ActorRef<never> }
  | { readonly type: 'pass-on'; readonly to: ActorRef<Total> }
  | { readonly type: 'stop-child'; readonly name: string }

export interface Total {
  readonly type: 'total'
  readonly total: number
}

type SampleSelf =
  | SampleMessage
  | { readonly type: 'other-ended'; readonly path: string; readonly reason: TerminatedReason }
  | { readonly type: 'effect-failed' }

export interface SampleState {
  readonly total: number
  readonly ended: readonly string[]
  readonly done: boolean
}

type SampleEffect =
  | { readonly type: 'tell-total'; readonly to: ActorRef<Total>; readonly total: number }
  | { readonly type: 'watch'; readonly other: ActorRef<never> }
  | { readonly type: 'start-children' }
  | { readonly type: 'stop-child'; readonly name: string }

type Props = ActorProps<SampleMessage, SampleSelf, SampleState, SampleEffect>

export interface SampleOptions {
  readonly mailbox?: Props['mailbox']
  readonly supervision?: Partial<Props['supervision']>
  readonly shutdownMs?: number
  /** Started at each start, by name. */
  readonly children?: Readonly<Record<string, SampleOptions>>
  readonly onStart?: () => void
  readonly signal?: (signal: Signal, state: SampleState) => void | Promise<void>
}

export function sampleActor(options: SampleOptions = {}): Props {
  return {
    behavior: () => sampleBehavior(options),
    mailbox: options.mailbox ?? { capacity: 100, overflow: 'refuse' },
    supervision: {
      restart: 'permanent',
      strategy: 'one-for-one',
      intensity: 5,
      periodMs: 60_000,
      ...options.supervision,
    },
    shutdownMs: options.shutdownMs ?? 1_000,
  }
}

function sampleBehavior(options: SampleOptions): Behavior<SampleState, SampleSelf, SampleEffect> {
  options.onStart?.()
  return {
    machine: {
      initial: { state: { total: 0, ended: [], done: false }, effects: [{ type: 'start-children' }] },
      step(state, message) {
        switch (message.type) {
          case 'add':
            return { state: { ...state, total: state.total + message.n }, effects: [] }
          case 'total-requested':
            return { state, effects: [{ type: 'tell-total', to: message.replyTo, total: state.total }] }
          case 'pass-on':
            return { state, effects: [{ type: 'tell-total', to: message.to, total: state.total }] }
          case 'crash':
            throw new TypeError('crash wanted')
          case 'finish':
            return { state: { ...state, done: true }, effects: [] }
          case 'watch-other':
            return { state, effects: [{ type: 'watch', other: message.other }] }
          case 'other-ended':
            return { state: { ...state, ended: [...state.ended, `${message.path} ${message.reason}`] }, effects: [] }
          case 'stop-child':
            return { state, effects: [{ type: 'stop-child', name: message.name }] }
          case 'silence-requested':
          case 'effect-failed':
            return { state, effects: [] }
        }
      },
      scope: () => 'counting',
      done: state => state.done,
    },
    interpret: context => effect => defer(() => carryOut(effect, context, options)),
    onEffectError: () => ({ type: 'effect-failed' }),
    terminated: ({ path }: Address, reason) => ({ type: 'other-ended', path, reason }),
    ...(options.signal && { signal: options.signal }),
    summarize: ({ total, ended }) => ({ total, ended }),
  }
}

function carryOut(
  effect: SampleEffect,
  context: ActorContext<SampleSelf>,
  options: SampleOptions,
): Observable<SampleSelf> {
  switch (effect.type) {
    case 'tell-total':
      effect.to.tell({ type: 'total', total: effect.total })
      return EMPTY
    case 'watch':
      context.watch(effect.other)
      return EMPTY
    case 'start-children':
      for (const [name, child] of Object.entries(options.children ?? {})) context.spawn(sampleActor(child), name)
      return EMPTY
    case 'stop-child':
      context.stop({
        address: { ...context.self.address, path: `${context.self.address.path}${effect.name}/` },
        tell: () => {},
      })
      return of({ type: 'add', n: 0 })
  }
}
