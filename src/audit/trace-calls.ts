// Results with one trace a call hold the calls themselves: what each saw and what it sampled. Pure.

import type { CompletionRecord } from '../domain/completion.js'
import type { JsonObject } from '../domain/json.js'
import { UNTOLD } from './reference-record.js'
import type { SavedSession } from './saved-result.js'

/** Calls of a result with one trace a call: each trace is what one call saw and sampled. Empty where traces are merged. */
export function callsOfTraces({ sessionId, traces, trajectory }: SavedSession): CompletionRecord[] {
  const count = trajectory['record_count']
  const single = traces.every(trace => trace.mask.every(bit => bit === 1))
  if (trajectory['builder'] !== 'per_request' && !(single && traces.length > 0 && traces.length === count)) return []
  return traces.map((trace, index) => {
    const entries = trace.metadata['completion_metadata']
    const [first] = (Array.isArray(entries) ? entries : []) as readonly JsonObject[]
    const aside = first?.['set_aside']
    return {
      ...UNTOLD,
      completionId: (typeof first?.['completion_id'] === 'string'
        ? first['completion_id']
        : `trace-${index}`) as CompletionRecord['completionId'],
      sessionId: sessionId as CompletionRecord['sessionId'],
      sequence: index,
      dialect: (typeof trajectory['api_type'] === 'string'
        ? trajectory['api_type']
        : '') as CompletionRecord['dialect'], // only passed on
      modelRequested: typeof trajectory['model_requested'] === 'string' ? trajectory['model_requested'] : '',
      modelUsed: typeof trajectory['model_used'] === 'string' ? trajectory['model_used'] : '',
      cachedTokens: 0,
      promptIds: trace.promptIds,
      sampledIds: trace.responseIds,
      logprobs: trace.logprobs,
      completionTokens: trace.responseIds.length,
      promptTokens: trace.promptIds.length,
      finish: trace.finishReason === 'length' ? 'length' : 'stop',
      engineFinish: trace.finishReason ?? '',
      notTrainable: typeof aside === 'string' ? aside : null,
      startedAtMs: typeof first?.['started_at_ms'] === 'number' ? first['started_at_ms'] : index,
      finishedAtMs: typeof first?.['finished_at_ms'] === 'number' ? first['finished_at_ms'] : index,
      request: { messages: trace.promptMessages, ...(trace.tools && { tools: trace.tools }) },
      response: trace.responseMessages[0] ? { choices: [{ message: trace.responseMessages[0] }] } : {},
    }
  })
}
