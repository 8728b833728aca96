// The probe: a few dozen small calls that tell whether what an inference server gives can be trained on. It asks as the gateway asks,
// and looks whether the server does what it reports. A probe that does not pass never leads to ids made from text.

import type { Clock } from '../domain/clock.js'
import type { HttpClient } from '../http/client.js'
import type { UpstreamAnswer, UpstreamProfile } from './base.js'
import { probeAgent } from './probe/agent-checks.js'
import { type Asker, asker, inBrief, user } from './probe/asking.js'
import { idsFinding, logprobsFinding, stopIdFinding, streamFinding } from './probe/capture-checks.js'
import {
  fault,
  ok,
  type ProbeFacts,
  type ProbeFinding,
  type ProbeReport,
  UNKNOWN_FACTS,
  verdictOf,
} from './probe/report.js'
import { probeSampling } from './probe/sampling-checks.js'
import {
  cacheFinding,
  overLongFinding,
  probeTokenizer,
  replicaFindings,
  servedModels,
  unknownFieldFinding,
} from './probe/server-checks.js'

export type { ProbeFinding, ProbeReport, ProbeVerdict } from './probe/report.js'

export interface ProbeTarget {
  /** Replicas, at least one. */
  readonly urls: readonly string[]
  readonly profile: UpstreamProfile
  /** null = the first one the server lists. */
  readonly model: string | null
  /** Of the server; null or absent = it wants none. */
  readonly apiKey?: string | null | undefined
  /** `upstreams[].sampling`. */
  readonly sampling: Readonly<Record<string, number>>
  /** Tokens; null = what the server tells. */
  readonly contextWindow: number | null
}

export interface ProbeOptions {
  readonly client: HttpClient
  readonly clock: Clock
  /** Rejects the probe with its reason. */
  readonly signal?: AbortSignal
  /** The whole probe; what is not done by then is a fault. Default 100 s. */
  readonly budgetMs?: number
  /** Told before each part. */
  readonly onStep?: (what: string) => void
}

const BUDGET_MS = 100_000
const QUESTION = user('What is a sextant? Answer in one sentence.')
const LENGTH = 64
/** The same seed for the whole answer and the streamed one. */
const SEED = 11

/** What the server is like is a value, also when it cannot be reached; rejects only when `signal` aborts. */
export async function probeUpstream(target: ProbeTarget, options: ProbeOptions): Promise<ProbeReport> {
  const { clock, signal, budgetMs = BUDGET_MS } = options
  const startedAt = clock.now()
  const stopping = new AbortController()
  const onAbort = () => stopping.abort(signal?.reason)
  if (signal?.aborted) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })
  const deadline = new AbortController()
  const outOfTime = new Error('out of time')
  clock.sleep(budgetMs, deadline.signal).then(
    () => stopping.abort(outOfTime),
    () => {},
  )
  const findings: ProbeFinding[] = []
  const state = { model: target.model ?? '', facts: UNKNOWN_FACTS, calls: () => 0 }
  try {
    await probe(target, { ...options, signal: stopping.signal }, findings, state)
  } catch (cause) {
    if (cause !== outOfTime) throw cause
    const seen = `the probe was not done after ${budgetMs / 1000} s`
    findings.push(fault('time', 'probe_unfinished', seen, 'a server with less load, or a faster one'))
  } finally {
    deadline.abort()
    signal?.removeEventListener('abort', onAbort)
  }
  return {
    urls: target.urls,
    profile: target.profile.id,
    model: state.model,
    ...verdictOf(findings),
    findings,
    facts: state.facts,
    calls: state.calls(),
    durationMs: clock.now() - startedAt,
  }
}

interface ProbeState {
  model: string
  facts: ProbeFacts
  calls: () => number
}

async function probe(
  target: ProbeTarget,
  { client, signal, clock, budgetMs = BUDGET_MS, onStep = () => {} }: ProbeOptions & { readonly signal: AbortSignal },
  findings: ProbeFinding[],
  state: ProbeState,
): Promise<void> {
  const { profile, urls, apiKey } = target
  const startedAt = clock.now()
  const isLate = () => clock.now() - startedAt > budgetMs / 2
  const know = (facts: Partial<ProbeFacts>) => {
    state.facts = { ...state.facts, ...facts }
  }
  onStep('models')
  const listing = asker({ client, profile, urls, model: '', apiKey, signal })
  const models = await servedModels(listing)
  state.model = target.model ?? models[0]?.id ?? ''
  const ask: Asker = asker({ client, profile, urls, model: state.model, apiKey, signal })
  state.calls = () => listing.calls + ask.calls
  const toldWindow = models.find(({ id }) => id === state.model)?.window ?? null
  know({ models: models.map(({ id }) => id), window: target.contextWindow ?? toldWindow })

  onStep('one whole answer')
  const whole = await ask.generate({ messages: [QUESTION], sampling: { maxTokens: LENGTH, seed: SEED } })
  if (!whole.ok) {
    findings.push(refusedFinding(whole, urls[0] ?? '', state))
    return
  }
  findings.push(ok('reachable', `${urls[0]} answers for ${state.model}`))
  if (!profile.capturesIds) {
    const seen = `profile ${profile.id} vouches for no ids`
    findings.push(fault('token_ids', 'profile_without_ids', seen, 'profile `vllm` or `sglang`, if the server is one'))
  }

  onStep('a streamed answer')
  findings.push(await streaming(ask, whole.answer))
  know({ streamsIds: findings.at(-1)?.outcome === 'ok' && profile.capturesIds })
  onStep('tokenizer')
  const { finding, window, ...tokenizer } = await probeTokenizer(ask, [QUESTION], whole.answer)
  findings.push(finding)
  know({ ...tokenizer, window: state.facts.window ?? window })
  onStep('tools, thinking, joins')
  const agent = await probeAgent(ask)
  findings.push(...agent.findings)

  const answers: UpstreamAnswer[] = [whole.answer, ...agent.answers]
  if (profile.capturesIds) {
    onStep('sampling: temperature 1, 2 and none')
    const sampling = await probeSampling(ask, target.sampling, isLate)
    findings.push(...sampling.findings)
    know(sampling.facts)
    answers.push(...sampling.answers)
    const ids = idsFinding(answers)
    const stop = stopIdFinding(answers, state.facts.endTokenId)
    findings.push(ids, logprobsFinding(answers), ...(ids.check === 'stop_id' ? [] : [stop]))
  }
  onStep('a prompt over the window')
  findings.push(await overLongFinding(ask, state.facts.window))
  onStep('unknown fields, cache, replicas')
  findings.push(await unknownFieldFinding(ask))
  const again = await ask.generate({ messages: [QUESTION], sampling: { maxTokens: 1 } })
  if (again.ok) findings.push(cacheFinding(again.answer))
  findings.push(...(await replicaFindings(ask, [QUESTION], whole.answer)))
}

async function streaming(ask: Asker, whole: UpstreamAnswer): Promise<ProbeFinding> {
  if (!ask.streams) return ok('streaming', 'calls are buffered: the server tells no ids in streams')
  const streamed = await ask.generate({
    messages: [QUESTION],
    sampling: { maxTokens: LENGTH, seed: SEED },
    stream: true,
  })
  if (!streamed.ok) {
    const seen = `a streamed call fails (${streamed.error.status}): ${inBrief(streamed.error.message)}`
    return fault('streaming', 'stream_refused', seen, 'profile `sglang` buffers calls')
  }
  if (!ask.profile.capturesIds) return ok('streaming', 'text comes with the stream')
  return streamFinding(streamed.answer, streamed.isStreamed, whole)
}

function refusedFinding(
  { error, isUnreachable }: { readonly error: { status: number; message: string }; readonly isUnreachable: boolean },
  url: string,
  { model, facts }: ProbeState,
): ProbeFinding {
  const said = `${error.status}: ${inBrief(error.message)}`
  if (isUnreachable) {
    return fault('reachable', 'unreachable', inBrief(error.message), `start the server, or mend the URL ${url}`)
  }
  if (facts.models.length > 0 && !facts.models.includes(model)) {
    const seen = `there is no model ${model} (${said}); served: ${facts.models.join(', ')}`
    return fault('token_ids', 'model_unknown', seen, 'name one of these: --model or upstreams[].modelServed')
  }
  return fault('token_ids', 'call_refused', `the first call is refused (${said})`, 'the profile that fits the server')
}
