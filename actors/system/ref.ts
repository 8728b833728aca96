// Addresses and refs: all that anyone holds of an actor. An address is plain data; a ref is a typed handle over it.

/** `system` names the thread's actor system (`main`, `proxy-1`, `merge-1`), `path` the actor below it (`/sessions/s-.../`). */
export interface Address {
  readonly system: string
  readonly path: string
}

/** Contravariant: a ref to a whole protocol may be passed where a narrower one is wanted, never the reverse. */
export interface ActorRef<in M> {
  readonly address: Address
  /** Sends without a reply; at most once, in order per pair. What cannot be delivered becomes a counted dead letter. */
  readonly tell: (message: M) => void
}

/** A question is a message with `replyTo`. `Reply<Q>` is what comes back. */
export type Reply<Q> = Q extends { readonly replyTo: ActorRef<infer R> } ? R : never

export interface AnyMessage {
  readonly type: string
}

/** The questions among `M` with `replyTo` left out: what `ask` takes. */
export type Question<M> = M extends { readonly replyTo: ActorRef<infer _R> } ? Omit<M, 'replyTo'> : never
/** The reply to a question of `M` by its `type`. */
export type ReplyTo<M, T> = M extends { readonly type: T; readonly replyTo: ActorRef<infer R> } ? R : never
