// Upstream profiles by their wire name (`upstreams[].profile` of the config).

import { openaiCompatible } from './openai-compatible.js'
import { sglang } from './sglang.js'
import { vllm } from './vllm.js'

export const upstreams = {
  vllm,
  sglang,
  openai_compatible: openaiCompatible,
} as const
