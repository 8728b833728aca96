// Model names that a harness asks for -> the upstream, the served name, and whether its calls may be trained. Unknown names go to
// the default: harnesses ask side models by names of their own.

import type { Plan, UpstreamPlan } from '../../src/config/plan.js'
import { RolloutError } from '../../src/domain/errors.js'
import type { UpstreamProfile } from '../../src/upstreams/base.js'
import { upstreams } from '../../src/upstreams/registry.js'
import { globMatches } from './side-calls.js'
import { Slots } from './slots.js'

/** An upstream of the plan with what is needed to call it. */
export interface UpstreamTarget {
  readonly plan: UpstreamPlan
  readonly profile: UpstreamProfile
  /** `upstreams[].concurrency`. */
  readonly slots: Slots
}

export interface ResolvedModel {
  readonly upstream: UpstreamTarget
  /** Name towards the engine: the adapter, else the served model. */
  readonly model: string
  readonly trainable: boolean
}

/** Throws CONFIG_INVALID for a profile that the registry does not have: the plan was checked, so this is ours to find. */
export function upstreamTargets(plan: Plan): ReadonlyMap<string, UpstreamTarget> {
  const profiles: Readonly<Record<string, UpstreamProfile>> = upstreams
  return new Map(
    plan.upstreams.map(upstream => {
      const profile = Object.hasOwn(profiles, upstream.profile) ? profiles[upstream.profile] : undefined
      if (profile === undefined) {
        throw new RolloutError('CONFIG_INVALID', `upstreams: ${upstream.id} has unknown profile ${upstream.profile}`)
      }
      return [upstream.id, { plan: upstream, profile, slots: new Slots(upstream.concurrency, plan.limits.mailbox) }]
    }),
  )
}

/** `sessionModels`: the task's names and globs; exact names before globs, globs in the task's order. */
export function resolveModel(
  plan: Plan,
  targets: ReadonlyMap<string, UpstreamTarget>,
  sessionModels: Readonly<Record<string, string>>,
  requested: string,
): ResolvedModel {
  const glob = Object.keys(sessionModels).find(key => globMatches(key, requested))
  const mapped = Object.hasOwn(sessionModels, requested) ? sessionModels[requested] : glob && sessionModels[glob]
  const name = [mapped, requested, 'default'].find(name => name !== undefined && Object.hasOwn(plan.models, name))
  const alias = name === undefined ? undefined : plan.models[name]
  const upstream = alias && targets.get(alias.upstream)
  if (alias === undefined || upstream === undefined) {
    throw new RolloutError('CONFIG_INVALID', `models: ${name ?? 'default'} leads to no upstream`)
  }
  return { upstream, model: alias.adapter ?? upstream.plan.modelServed, trainable: alias.trainable }
}

/** Names a models route lists: the aliases and what the task names exactly. */
export function modelNames(plan: Plan, sessionModels: Readonly<Record<string, string>>): readonly string[] {
  const exact = Object.keys(sessionModels).filter(name => !/[*?]/.test(name))
  return [...new Set([...Object.keys(plan.models), ...exact])]
}
