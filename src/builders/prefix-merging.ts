// Builder `prefix_merging`: calls whose prompts extend one another token for token become one trace, so that a trainer
// reads each token once and never trains one behind a context the model did not see (design: trajectory.md).

import { z } from 'zod'
import type { SessionLedger } from '../domain/completion.js'
import type { JsonObject } from '../domain/json.js'
import { withTexts } from '../ledger/decode.js'
import { reconstruct } from '../ledger/reconstruct.js'
import { mergedTrajectory } from '../ledger/trajectory.js'
import type { BuilderContext, BuilderPlugin } from './base.js'
import { problemsOf, settingsOf } from './shared/settings.js'

const settings = z.strictObject({
  /** `faithful` joins exact and re-tokenised answers; `lenient` also other white space; `prompt_prefix` whenever the prompt is a prefix. */
  join: z.enum(['faithful', 'lenient', 'prompt_prefix']).default('faithful'),
  train_side_calls: z.boolean().default(false),
  keep_retries: z.boolean().default(false),
  end_of_turn_token_id: z.int().min(0).nullable().default(null),
  max_tokens: z.int().min(1).nullable().default(null),
})

export const prefixMerging: BuilderPlugin = {
  id: 'prefix_merging',
  summary: 'one trace for each leaf of the session: calls that extend one another token for token are merged',
  check: (config: JsonObject) => problemsOf(settings, config),
  async build(ledger: SessionLedger, config: JsonObject, context: BuilderContext) {
    const { join, train_side_calls, keep_retries, end_of_turn_token_id, max_tokens } = settingsOf(settings, config)
    const asking = reconstruct(ledger, {
      join,
      trainSideCalls: train_side_calls,
      keepRetries: keep_retries,
      endOfTurnTokenId: end_of_turn_token_id,
    })
    const made = await withTexts(asking, context.decode, context.signal)
    return mergedTrajectory(ledger, made, { builder: 'prefix_merging', ...identityOf(context) }, max_tokens)
  },
}

const identityOf = ({ sessionId, taskId, taskMetadata }: BuilderContext) => ({ sessionId, taskId, taskMetadata })
