// Builder `per_request`: one trace for every call with ids. Side calls, abandoned retries and calls that may not be trained
// keep a trace with mask 0, counted under their reason. Joins are counted as well, so that the result shows what merging would give.

import { z } from 'zod'
import type { SessionLedger } from '../domain/completion.js'
import type { JsonObject } from '../domain/json.js'
import { withTexts } from '../ledger/decode.js'
import { reconstruct } from '../ledger/reconstruct.js'
import { perCallTrajectory } from '../ledger/trajectory.js'
import type { BuilderContext, BuilderPlugin } from './base.js'
import { problemsOf, settingsOf } from './shared/settings.js'

const settings = z.strictObject({
  train_side_calls: z.boolean().default(false),
  keep_retries: z.boolean().default(false),
  end_of_turn_token_id: z.int().min(0).nullable().default(null),
  max_tokens: z.int().min(1).nullable().default(null),
})

export const perRequest: BuilderPlugin = {
  id: 'per_request',
  summary: 'one trace for each model call',
  check: (config: JsonObject) => problemsOf(settings, config),
  async build(ledger: SessionLedger, config: JsonObject, context: BuilderContext) {
    const { train_side_calls, keep_retries, end_of_turn_token_id, max_tokens } = settingsOf(settings, config)
    const asking = reconstruct(ledger, {
      join: 'faithful',
      trainSideCalls: train_side_calls,
      keepRetries: keep_retries,
      endOfTurnTokenId: end_of_turn_token_id,
    })
    const made = await withTexts(asking, context.decode, context.signal)
    const { sessionId, taskId, taskMetadata } = context
    return perCallTrajectory(ledger, made, { builder: 'per_request', sessionId, taskId, taskMetadata }, max_tokens)
  },
}
