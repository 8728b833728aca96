// Builders by wire name.

import type { BuilderPlugin } from './base.js'
import { perRequest } from './per-request.js'
import { prefixMerging } from './prefix-merging.js'

export const builders = {
  per_request: perRequest,
  prefix_merging: prefixMerging,
} as const satisfies Record<string, BuilderPlugin>

export type BuilderId = keyof typeof builders
