// SessionLedger -> Trajectory. Pure: text of ids comes as a function.

import type { SessionLedger } from '../domain/completion.js'
import type { JsonObject } from '../domain/json.js'
import type { Trajectory } from '../domain/trajectory.js'

/** Text of token ids; null = cannot be told. Asynchronous, since it may be the engine's `/detokenize`. */
export type Decode = (ids: Int32Array) => Promise<string | null>

export interface BuilderContext {
  readonly decode: Decode
  readonly sessionId: string
  readonly taskId: string
  readonly taskMetadata: JsonObject
  readonly signal?: AbortSignal
}

export interface BuilderPlugin {
  readonly id: string
  readonly summary: string
  /** Problems of `config`. Called at submit. */
  check(config: JsonObject): readonly { readonly path: string; readonly message: string }[]
  /** An empty ledger gives status ERROR, error `no completions`. */
  build(ledger: SessionLedger, config: JsonObject, context: BuilderContext): Promise<Trajectory>
}
