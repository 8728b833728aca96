// Does a saved result add up? What a trainer relies on, checked on the file itself and not taken from its own counts. Pure.

import type { SavedResult, SavedTrace } from './read.js'

export interface Check {
  readonly name: string
  readonly ok: boolean
  /** What was found. */
  readonly detail: string
}

const ones = (mask: readonly number[]): number => mask.reduce((sum, one) => sum + (one === 1 ? 1 : 0), 0)

export function checkResult({ trajectory }: SavedResult): readonly Check[] {
  const { traces, metadata } = trajectory
  const masked = traces.reduce((sum, trace) => sum + ones(trace.loss_mask), 0)
  const checks: Check[] = [lengths(traces), logprobs(traces), spans(traces), once(traces)]
  const tokens = metadata.ledger?.tokens
  if (!tokens) return checks
  const setAside = Object.values(tokens.set_aside).reduce((sum, n) => sum + n, 0)
  return [
    {
      name: 'sampled = trained + set aside',
      ok: tokens.sampled === tokens.trained + setAside,
      detail: `${tokens.sampled} = ${tokens.trained} + ${setAside}`,
    },
    {
      name: 'the masks sum to what is trained',
      ok: masked === tokens.trained,
      detail: `${masked} mask-1 tokens, ${tokens.trained} counted as trained`,
    },
    ...checks,
  ]
}

const result = (name: string, bad: readonly string[], good: string): Check => ({
  name,
  ok: bad.length === 0,
  detail: bad.length === 0 ? good : bad.slice(0, 3).join('; '),
})

function lengths(traces: readonly SavedTrace[]): Check {
  const bad = traces.flatMap((trace, i) => {
    const { length } = trace.response_ids
    const fits = trace.loss_mask.length === length && (trace.response_logprobs?.length ?? length) === length
    return fits
      ? []
      : [`trace ${i + 1}: ${length} ids, ${trace.loss_mask.length} mask, ${trace.response_logprobs?.length} logprobs`]
  })
  return result('ids, masks and logprobs are equally long', bad, `${traces.length} traces`)
}

function logprobs(traces: readonly SavedTrace[]): Check {
  let trained = 0
  const bad = traces.flatMap((trace, i) => {
    const wrong = trace.loss_mask.filter((one, at) => {
      if (one !== 1) return false
      trained++
      const value = trace.response_logprobs?.[at]
      return value === undefined || !Number.isFinite(value) || value <= -9999
    }).length
    return wrong > 0 ? [`trace ${i + 1}: ${wrong} trained tokens without a logprob`] : []
  })
  return result('every trained token has its logprob', bad, `${trained} tokens`)
}

/** Mask 1 exactly on the spans of trained calls. Only where the result lists its calls. */
function spans(traces: readonly SavedTrace[]): Check {
  const bad = traces.flatMap((trace, i) => {
    const calls = trace.metadata.completion_metadata
    if (calls.length === 0) return []
    const expected = new Uint8Array(trace.response_ids.length)
    for (const call of calls) if (call.trained) expected.fill(1, call.start, call.end)
    const wrong = trace.loss_mask.filter((one, at) => (one === 1) !== (expected[at] === 1)).length
    return wrong > 0 ? [`trace ${i + 1}: ${wrong} tokens`] : []
  })
  return result('mask 1 on sampled answers and nowhere else', bad, `${traces.length} traces`)
}

function once(traces: readonly SavedTrace[]): Check {
  const times = new Map<string, number>()
  for (const trace of traces)
    for (const call of trace.metadata.completion_metadata)
      if (call.trained) times.set(call.completion_id, (times.get(call.completion_id) ?? 0) + 1)
  const bad = [...times].filter(([, n]) => n > 1).map(([id, n]) => `${id} ${n} times`)
  return result('no call is trained twice', bad, `${times.size} calls trained`)
}
