// The sampling contract: what the task asks, what the harness asks, what is then in force at the engine. Everything that shapes
// the distribution is sent explicitly, since engines otherwise apply the model's own defaults and raw logprobs are not the policy's.

import { createHash } from 'node:crypto'
import type { SamplingInForce } from '../../src/domain/completion.js'
import type { CanonicalRequest, RequestedSampling } from '../../src/domain/conversation.js'
import type { SamplingName, SamplingSpec } from '../../src/domain/task.js'

/** What the service asks for when neither task nor harness says anything; null = not sent. */
const SERVICE_DEFAULTS: Readonly<Record<SamplingName, number | null>> = {
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  max_tokens: null,
  seed: null,
}

const HARNESS_FIELDS: Readonly<Record<SamplingName, Exclude<keyof RequestedSampling, 'stop'>>> = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  min_p: 'minP',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  max_tokens: 'maxTokens',
  seed: 'seed',
}

export interface ResolvedSampling {
  /** What is sent. */
  readonly asked: SamplingInForce
  /** What the engine then uses: where nothing is sent, its own defaults as far as the config knows them. */
  readonly inForce: SamplingInForce
}

/**
 * `spec`: the task's rules; `samplingSeed`: base seed of the session or null; `engine`: the upstream's own defaults by wire name.
 * With a base seed the engine's seed is a function of it and of the turn, so that the same run samples the same.
 */
export function resolveSampling(
  request: CanonicalRequest,
  spec: SamplingSpec,
  samplingSeed: number | null,
  engine: Readonly<Record<string, number>>,
): ResolvedSampling {
  const asked = (name: SamplingName): number | null => {
    const rule = spec[name]
    const wanted = request.sampling[HARNESS_FIELDS[name]] ?? null
    if (rule?.mode === 'force') return rule.value
    if (rule?.mode === 'default') return wanted ?? rule.value
    if (rule?.mode === 'pass') return wanted
    return wanted ?? SERVICE_DEFAULTS[name]
  }
  const seed = samplingSeed !== null && spec.seed?.mode !== 'pass' ? turnSeed(samplingSeed, request) : asked('seed')
  const sent: SamplingInForce = {
    temperature: asked('temperature'),
    topP: asked('top_p'),
    topK: asked('top_k'),
    minP: asked('min_p'),
    presencePenalty: asked('presence_penalty'),
    frequencyPenalty: asked('frequency_penalty'),
    maxTokens: asked('max_tokens'),
    seed,
  }
  return {
    asked: sent,
    inForce: {
      ...sent,
      temperature: sent.temperature ?? engine['temperature'] ?? null,
      topP: sent.topP ?? engine['top_p'] ?? null,
      topK: sent.topK ?? engine['top_k'] ?? null,
      minP: sent.minP ?? engine['min_p'] ?? null,
      // No engine has a default of its own for these two.
      presencePenalty: sent.presencePenalty ?? 0,
      frequencyPenalty: sent.frequencyPenalty ?? 0,
    },
  }
}

/** 31 bits of SHA-256 over the base seed and the number of assistant messages: the same turn of the same sample, the same seed. */
function turnSeed(base: number, request: CanonicalRequest): number {
  const turn = request.messages.filter(message => message.role === 'assistant').length
  return createHash('sha256').update(`${base}:${turn}`).digest().readUInt32BE(0) >>> 1
}

/** True when what shaped the distribution is known. */
export const isSamplingKnown = ({ temperature, topP, topK, minP }: SamplingInForce): boolean =>
  temperature !== null && topP !== null && topK !== null && minP !== null
