// Branded identifiers. A brand costs nothing at run time and keeps a session id from being used as a key.
// Ids are made outside the pure code (randomness comes as a parameter there).

declare const brand: unique symbol
type Branded<B extends string> = string & { readonly [brand]: B }

/** Trainer's own name of a task: first character alphanumeric, then up to 127 of `A-Z a-z 0-9 _ . -` (obligation A-5). */
export type TaskId = Branded<'TaskId'>
/** `s-<uuid4>`; public, stable over attempts, safe as a path element. */
export type SessionId = Branded<'SessionId'>
/** `sk-<43 base64url characters>`; the harness's API key. Secret: never logged, never an id. */
export type SessionKey = Branded<'SessionKey'>
/** `msg_<12 hex>`; one captured model call. */
export type CompletionId = Branded<'CompletionId'>

const ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/

/** True when `text` may be used as a task or session id and as a path element. */
export const isSafeId = (text: string): boolean => ID_PATTERN.test(text)
