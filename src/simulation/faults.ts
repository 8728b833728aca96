// Ways in which a real server falls short, to be planted in the simulation (`simulation.faults`), by name. `name@3` plants one in
// the third chat call only, `name` in each. Imports nothing, so that the config can name them.

export const FAULTS = {
  no_ids: 'a server too old for token ids: the fields that ask for them are let through and do nothing',
  no_stop_id: 'the end token is sampled and counted, but is not among the ids',
  no_usage: 'the answer tells no usage',
  short_logprobs: '`logprobs.content` lacks its last entry; ids are whole',
  clamped_logprobs: 'every third logprob is -9999: under the limit of what the server reports',
  other_reasoning_key:
    "thinking stands under the other engine's name: `reasoning_content` on vLLM's wire, `reasoning` on SGLang's",
  other_error_shape: "errors have the other engine's shape: flat on vLLM's wire, nested on SGLang's",
  strict_fields: "fields that OpenAI's API does not have are refused with 400",
  abort_finish: 'the answer ends after a few tokens with finish reason `abort`, as when weights are updated',
  server_error: '500 at once',
  overloaded: '429 at once, with Retry-After',
  midstream_error: 'a stream breaks off with an error event of status 500; a whole answer is a 500',
  disconnect: 'the connection is cut: in mid-stream, or before the first byte of a whole answer',
  slow_first_byte: 'the first byte comes after 30 s',
} as const

export type FaultName = keyof typeof FAULTS
/** Asks whether a fault is planted in one call. */
export type Faults = (name: FaultName) => boolean

/** What `simulation.faults` may hold. */
export const FAULT_PATTERN = new RegExp(`^(?:${Object.keys(FAULTS).join('|')})(?:@[1-9]\\d{0,8})?$`)

export const SLOW_FIRST_BYTE_MS = 30_000
/** Tokens of an answer that is aborted. */
export const ABORTED_TOKENS = 5

/** The faults of chat call number `call`, counted from 1. `planted`: each matches FAULT_PATTERN. */
export function faultsOf(planted: readonly string[], call: number): Faults {
  const inForce = new Set(
    planted.flatMap(text => {
      const [name = '', only] = text.split('@')
      return only === undefined || Number(only) === call ? [name] : []
    }),
  )
  return name => inForce.has(name)
}
