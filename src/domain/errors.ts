// One error class and one table of codes. Tell errors apart by `code`, never by text or `instanceof`:
// across a thread they travel as plain data and come back with their code.

export interface ErrorCodeEntry {
  readonly meaning: string
  readonly retryable: boolean
  /** HTTP status when the error reaches a client. */
  readonly status: number
  /** Who must act. */
  readonly actor: 'operator' | 'task author' | 'harness' | 'upstream' | 'us'
}

/** Prefix = whose fault it is (style.md, section 5). */
export const ERROR_CODES = {
  CONFIG_INVALID: { meaning: 'the config file breaks its schema', retryable: false, status: 500, actor: 'operator' },
  TASK_INVALID: { meaning: 'the task request breaks its schema', retryable: false, status: 422, actor: 'task author' },
  TASK_CONFLICT: { meaning: 'another task with this id is live', retryable: false, status: 409, actor: 'task author' },
  TASK_UNKNOWN: { meaning: 'no task has this id', retryable: false, status: 404, actor: 'task author' },
  TASK_QUEUE_FULL: { meaning: 'limits.queuedSessions is reached', retryable: true, status: 429, actor: 'operator' },
  TASK_ASSETS_MISSING: {
    meaning: 'what the task wants to upload is not on this host',
    retryable: false,
    status: 503,
    actor: 'task author',
  },
  TASK_UNAUTHENTICATED: {
    meaning: 'the control token is missing or wrong',
    retryable: false,
    status: 401,
    actor: 'operator',
  },
  SERVICE_STOPPING: {
    meaning: 'the service drains and takes no tasks',
    retryable: true,
    status: 503,
    actor: 'operator',
  },
  DIALECT_INVALID_REQUEST: {
    meaning: 'the harness sent a request its API refuses',
    retryable: false,
    status: 400,
    actor: 'harness',
  },
  DIALECT_UNKNOWN_ROUTE: {
    meaning: 'the path is no route of a model API',
    retryable: false,
    status: 404,
    actor: 'harness',
  },
  DIALECT_UNAUTHENTICATED: {
    meaning: 'the session key is missing or unknown',
    retryable: false,
    status: 401,
    actor: 'harness',
  },
  DIALECT_FORBIDDEN: { meaning: 'the session is not running', retryable: false, status: 403, actor: 'harness' },
  DIALECT_TOO_LARGE: { meaning: 'the body is over limits.bodyBytes', retryable: false, status: 413, actor: 'harness' },
  DIALECT_UNSUPPORTED_ENCODING: {
    meaning: 'the content encoding is not supported',
    retryable: false,
    status: 415,
    actor: 'harness',
  },
  DIALECT_RATE_LIMITED: { meaning: 'admission timed out', retryable: true, status: 429, actor: 'operator' },
  UPSTREAM_ERROR: {
    meaning: 'the inference server answered an error',
    retryable: true,
    status: 502,
    actor: 'upstream',
  },
  UPSTREAM_UNREACHABLE: {
    meaning: 'the inference server cannot be reached',
    retryable: true,
    status: 502,
    actor: 'upstream',
  },
  UPSTREAM_TIMEOUT: {
    meaning: 'the inference server did not answer in time',
    retryable: true,
    status: 504,
    actor: 'upstream',
  },
  UPSTREAM_CONTEXT_LENGTH: {
    meaning: 'the prompt is over the context window',
    retryable: false,
    status: 400,
    actor: 'harness',
  },
  UPSTREAM_MALFORMED: {
    meaning: 'the answer of the inference server cannot be read',
    retryable: true,
    status: 502,
    actor: 'upstream',
  },
  RUNTIME_FAILED: { meaning: 'the sandbox could not be prepared', retryable: false, status: 500, actor: 'task author' },
  RUNTIME_PATH_REFUSED: {
    meaning: 'a path leaves the session folder',
    retryable: false,
    status: 422,
    actor: 'task author',
  },
  HARNESS_UNKNOWN: { meaning: 'no preset has this name', retryable: false, status: 422, actor: 'task author' },
  HARNESS_INSTALL_FAILED: {
    meaning: 'the harness CLI could not be installed',
    retryable: true,
    status: 500,
    actor: 'operator',
  },
  HARNESS_FAILED: { meaning: 'the harness could not be run', retryable: false, status: 500, actor: 'task author' },
  EVAL_FAILED: { meaning: 'the evaluator failed', retryable: false, status: 500, actor: 'task author' },
  EVAL_TIMEOUT: {
    meaning: 'the evaluator ran into its time limit',
    retryable: false,
    status: 500,
    actor: 'task author',
  },
  ACTOR_MAILBOX_FULL: { meaning: 'a mailbox is at its capacity', retryable: true, status: 503, actor: 'us' },
  ACTOR_ASK_TIMEOUT: { meaning: 'no reply within the deadline', retryable: true, status: 503, actor: 'us' },
  ACTOR_DEAD: { meaning: 'the actor or its thread has ended', retryable: true, status: 503, actor: 'us' },
  STORE_FULL: {
    meaning: 'the store has no room: the disk is full, or store.maxBytes is reached',
    retryable: true,
    status: 503,
    actor: 'operator',
  },
  STORE_UNWRITABLE: {
    meaning: 'the store cannot be opened or written',
    retryable: true,
    status: 503,
    actor: 'operator',
  },
  STORE_DAMAGED: {
    meaning: 'what the store holds is not what was written',
    retryable: false,
    status: 500,
    actor: 'operator',
  },
  STORE_VERSION: {
    meaning: 'the store was written by a newer version',
    retryable: false,
    status: 500,
    actor: 'operator',
  },
  STORE_IN_USE: {
    meaning: 'another service holds the stateDir',
    retryable: false,
    status: 500,
    actor: 'operator',
  },
  STORE_MISSING: { meaning: 'there is no store to read', retryable: false, status: 404, actor: 'operator' },
  WIRE_MALFORMED: { meaning: 'a frame between threads cannot be decoded', retryable: false, status: 500, actor: 'us' },
  INTERNAL_BUG: { meaning: 'a broken invariant of our own', retryable: false, status: 500, actor: 'us' },
} as const satisfies Record<string, ErrorCodeEntry>

export type ErrorCode = keyof typeof ERROR_CODES

/** Plain form, for messages between threads and for JSON. */
export interface ErrorData {
  readonly code: ErrorCode
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
}

export class RolloutError extends Error {
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    code: ErrorCode,
    message: string,
    options: { details?: Readonly<Record<string, unknown>>; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'RolloutError'
    this.code = code
    this.details = options.details ?? {}
  }

  get retryable(): boolean {
    return ERROR_CODES[this.code].retryable
  }

  get status(): number {
    return ERROR_CODES[this.code].status
  }

  toData(): ErrorData {
    return { code: this.code, message: this.message, details: this.details }
  }
}

/** Any thrown value as plain data; what has no code of ours is INTERNAL_BUG. */
export function errorData(cause: unknown): ErrorData {
  if (cause instanceof RolloutError) return cause.toData()
  const code = (cause as { code?: unknown } | null)?.code
  const told = (cause as { message?: unknown } | null)?.message
  const message = typeof told === 'string' ? told : String(cause)
  if (typeof code === 'string' && code in ERROR_CODES) {
    const details = (cause as { details?: Record<string, unknown> }).details
    return { code: code as ErrorCode, message, ...(details && { details }) }
  }
  return { code: 'INTERNAL_BUG', message }
}

export const errorFromData = (data: ErrorData): RolloutError =>
  new RolloutError(data.code, data.message, data.details ? { details: data.details } : {})
