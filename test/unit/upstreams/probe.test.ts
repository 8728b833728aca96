// The probe against the simulation over real HTTP: an honest server is trainable, and each planted lie is named with its cure.

import t from 'tap'
import type { Clock } from '../../../src/domain/clock.js'
import { createHttpClient } from '../../../src/http/client.js'
import type { UpstreamProfile } from '../../../src/upstreams/base.js'
import { type ProbeReport, probeUpstream } from '../../../src/upstreams/probe.js'
import { upstreams } from '../../../src/upstreams/registry.js'
import { LIES, type Lie, liar, silently } from '../../support/liar.js'
import { simulate } from '../../support/simulation.js'
import { wallClock } from '../../support/wall-clock.js'

interface Teardown {
  teardown(run: () => unknown): void
}

async function probed(
  t: Teardown,
  urls: readonly string[],
  changes: {
    readonly profile?: UpstreamProfile
    readonly model?: string | null
    readonly budgetMs?: number
    readonly clock?: Clock
  } = {},
): Promise<ProbeReport> {
  const client = createHttpClient({ connections: 8 })
  t.teardown(() => client.close())
  const { profile = upstreams.vllm, model = null, budgetMs, clock = wallClock } = changes
  const target = { urls, profile, model, sampling: {}, contextWindow: null }
  return probeUpstream(target, { client, clock, ...(budgetMs !== undefined && { budgetMs }) })
}

/** Time that is always nearly up: the probe draws no more than it must. */
function hasty(): Clock {
  let now = 0
  return {
    now: () => {
      now += 60_000
      return now
    },
    sleep: wallClock.sleep,
  }
}

const finding = ({ findings }: ProbeReport, check: string) => findings.find(one => one.check === check)
const WINDOW = 4_096

t.test('an honest server is trainable', async t => {
  const { url } = await simulate(t, { contextWindow: WINDOW })
  const report = await probed(t, [url])
  t.match(report, { verdict: 'trainable', reasons: [], model: 'policy', profile: 'vllm' })
  t.strictSame(
    report.findings.filter(({ outcome }) => outcome === 'warning' || outcome === 'fault'),
    [],
  )
  t.match(report.facts, {
    models: ['policy'],
    window: WINDOW,
    logprobs: 'raw',
    defaults: null,
    streamsIds: true,
    hasTokenizer: true,
    endTokenId: 151_645,
  })
  for (const check of ['token_ids', 'stop_id', 'logprobs', 'streaming', 'sampling', 'tool_calls', 'reasoning'])
    t.equal(finding(report, check)?.outcome, 'ok', check)
  for (const check of ['joins', 'tokenizer', 'context_limit', 'prefix_cache'])
    t.equal(finding(report, check)?.outcome, 'ok', check)
  t.ok(report.facts.wouldShow.length > 0, 'it says how small a lie it would have found')
})

for (const [lie, reason, check] of [
  ['idsMissing', 'no_token_ids', 'token_ids'],
  ['idsMissingInStreams', 'stream_without_ids', 'streaming'],
  ['idsNotUsage', 'ids_not_usage', 'token_ids'],
  ['idsNotLogprobs', 'ids_not_logprobs', 'token_ids'],
  ['stopIdLeftOut', 'stop_id_missing', 'stop_id'],
  ['stopIdLeftOutButCounted', 'stop_id_missing', 'stop_id'],
  ['noToolParser', 'no_tool_parser', 'tool_calls'],
  ['toolsRefused', 'tools_refused', 'tool_calls'],
  ['contextCut', 'context_cut', 'context_limit'],
  ['unknownLogprobs', 'logprobs_unknown', 'logprobs'],
] as const) {
  t.test(`${lie}: evaluation only, for ${reason}, with a cure`, async t => {
    const simulation = await simulate(t, { contextWindow: WINDOW })
    const report = await probed(t, [await liar(t, simulation, LIES[lie])], { clock: hasty() })
    t.equal(report.verdict, 'evaluation_only')
    t.ok(report.reasons.includes(reason), report.reasons.join(', '))
    t.match(finding(report, check), { outcome: 'fault', reason, cure: String })
  })
}

for (const [changes, seen] of [
  [{ topP: 0.7 }, /top_p 0.7|top_k 2/],
  [{ topK: 2 }, /top_k 2/],
  [{ topK: 1 }, /greedy/],
  [{ minP: 0.95 }, /min_p|greedy/],
] as const) {
  t.test(`a server that draws with ${JSON.stringify(changes)} and reports raw logprobs is found out`, async t => {
    const simulation = await simulate(t, { contextWindow: WINDOW }, { sampler: silently(changes) })
    const report = await probed(t, [simulation.url])
    t.match(report, { verdict: 'evaluation_only', reasons: ['sampling_truncated'] })
    t.match(finding(report, 'sampling'), { seen, cure: /--generation-config vllm/ })
    t.equal(report.facts.logprobs, 'raw')
  })
}

t.test('a server that keeps its own temperature is found out', async t => {
  const simulation = await simulate(t, { contextWindow: WINDOW }, { sampler: silently({ temperature: 0.5 }) })
  const report = await probed(t, [simulation.url])
  t.match(report, { verdict: 'evaluation_only', reasons: ['temperature_not_applied'] })
  t.match(finding(report, 'sampling')?.seen, /temperature 0\.[456]/)
})

for (const [drift, reason] of [
  ['two_line_feeds', 'join_whitespace'],
  ['compact_json', 'join_arguments_reserialised'],
] as const) {
  t.test(`a template that breaks joins (${drift}) is told, with the cause`, async t => {
    const { url } = await simulate(t, { contextWindow: WINDOW, drift: [drift] })
    const report = await probed(t, [url], { clock: hasty() })
    t.match(report, { verdict: 'trainable', reasons: [] })
    t.match(finding(report, 'joins'), { outcome: 'warning', reason, seen: /became/ })
  })
}

t.test('logprobs after temperature are told from raw ones by the gap between likely tokens', async t => {
  const { url } = await simulate(t, { contextWindow: WINDOW, logprobsMode: 'processed_logprobs' })
  const report = await probed(t, [url], { clock: hasty() })
  t.match(report, { verdict: 'evaluation_only', reasons: ['logprobs_processed'] })
  t.equal(report.facts.logprobs, 'processed')
  t.match(finding(report, 'logprob_semantics'), { seen: /0\.50/, cure: /--logprobs-mode raw_logprobs/ })
})

for (const [lie, check, match] of [
  [
    'ownDefaults',
    'defaults',
    { outcome: 'note', seen: /temperature 0\.[345]|top_k 2/, cure: /--generation-config vllm/ },
  ],
  ['thinkingInText', 'reasoning', { outcome: 'warning', reason: 'no_reasoning_parser', cure: /--reasoning-parser/ }],
  ['contextErrorOfItsOwn', 'context_limit', { outcome: 'warning', reason: 'error_shape_unknown' }],
  ['unknownFieldsRefused', 'unknown_fields', { outcome: 'note', seen: /refused/ }],
  ['noTokenizer', 'tokenizer', { outcome: 'note' }],
] as const) {
  t.test(`${lie}: told, but no obstacle to training`, async t => {
    const simulation = await simulate(t, { contextWindow: 32_768 })
    const clock = lie === 'ownDefaults' ? wallClock : hasty()
    const report = await probed(t, [await liar(t, simulation, LIES[lie])], { clock })
    t.match(report, { verdict: 'trainable', reasons: [] })
    t.match(finding(report, check), match)
  })
}

t.test('a server that fails some answers for what the model wrote leaves a selection: not trainable', async t => {
  const simulation = await simulate(t, { contextWindow: WINDOW })
  const message = 'The model produced output that does not match the expected format'
  const error = { status: 500, body: { error: { code: 500, message, type: 'server_error' } } }
  let draws = 0
  const picky: Lie = {
    request: body => {
      if (Number(body['top_logprobs'] ?? 0) === 0) return undefined
      draws += 1
      return draws % 4 === 3 ? error : undefined
    },
  }
  const report = await probed(t, [await liar(t, simulation, picky)], { clock: hasty() })
  t.match(report, { verdict: 'evaluation_only', reasons: ['answers_fail'] })
  t.match(finding(report, 'sampling'), { outcome: 'fault', seen: /answers fail \(500: The model/, cure: String })

  const noTools: Lie = { request: body => (Array.isArray(body['tools']) ? error : undefined) }
  const without = await probed(t, [await liar(t, simulation, noTools)], { clock: hasty() })
  t.match(without, { verdict: 'evaluation_only', reasons: ['tools_fail'] })
  let calls = 0
  const once: Lie = {
    request: body => {
      if (!Array.isArray(body['tools'])) return undefined
      calls += 1
      return calls === 1 ? error : undefined
    },
  }
  const again = await probed(t, [await liar(t, simulation, once)], { clock: hasty() })
  t.match(finding(again, 'tool_calls'), { outcome: 'ok' }, 'one failed answer is no verdict on tools')
})

t.test('a server that lists one likely token shows too little of its sampling', async t => {
  const simulation = await simulate(t, { contextWindow: WINDOW })
  const terse: Lie = { request: body => void (body['top_logprobs'] && Object.assign(body, { top_logprobs: 2 })) }
  const report = await probed(t, [await liar(t, simulation, terse)], { clock: hasty() })
  t.match(report, { verdict: 'evaluation_only', reasons: ['sampling_unproven'] })
})

t.test(
  "llama.cpp's own ways: a tokenizer route that knows no messages, and the window it was started with",
  async t => {
    const simulation = await simulate(t, { contextWindow: WINDOW })
    const listed = {
      object: 'list',
      data: [{ id: 'policy', object: 'model', owned_by: 'llamacpp', meta: { n_ctx: WINDOW, n_ctx_train: 32_768 } }],
    }
    const itsOwn: Lie = {
      request: (_body, path) => {
        if (path === '/tokenize') return { status: 200, body: { tokens: [] } }
        return path === '/v1/models' ? { status: 200, body: listed } : undefined
      },
    }
    const report = await probed(t, [await liar(t, simulation, itsOwn)], { clock: hasty() })
    t.match(finding(report, 'tokenizer'), { outcome: 'note', seen: /no route counts/ })
    t.match(report.facts, { window: WINDOW, hasTokenizer: false })
  },
)

t.test('replicas that are not alike are found out', async t => {
  const one = await simulate(t, { contextWindow: WINDOW })
  const other: Lie = {
    answer: body => void (Array.isArray(body['prompt_token_ids']) && body['prompt_token_ids'].push(1)),
  }
  const report = await probed(t, [one.url, await liar(t, one, other)], { clock: hasty() })
  t.match(report, { verdict: 'evaluation_only', reasons: ['replicas_differ'] })
  const alike = await probed(t, [one.url, one.url], { clock: hasty() })
  t.match(alike.verdict, 'trainable')
})

t.test('a server without ids by its profile, an unknown model, and no server at all', async t => {
  const { url } = await simulate(t, { contextWindow: WINDOW })
  const plain = await probed(t, [url], { profile: upstreams.openai_compatible })
  t.match(plain, { verdict: 'evaluation_only', reasons: ['profile_without_ids'] })
  const unknown = await probed(t, [url], { model: 'gpt-9' })
  t.match(unknown, { verdict: 'evaluation_only', reasons: ['model_unknown'] })
  t.match(unknown.findings[0], { seen: /served: policy/ })
  const nobody = await probed(t, ['http://127.0.0.1:9'])
  t.match(nobody, { verdict: 'unreachable', reasons: ['unreachable'] })
})

t.test('a probe that does not get done in time says so; one that is aborted rejects', async t => {
  const simulation = await simulate(t, { contextWindow: WINDOW })
  const mute: Lie = { request: (body, path) => (path === '/tokenize' ? { status: 503, body } : undefined) }
  const url = await liar(t, simulation, mute)
  const late = await probed(t, [url], { budgetMs: 1 })
  t.match(late, { verdict: 'evaluation_only', reasons: ['probe_unfinished'] })
  const client = createHttpClient({ connections: 1 })
  t.teardown(() => client.close())
  const target = { urls: [url], profile: upstreams.vllm, model: null, sampling: {}, contextWindow: null }
  await t.rejects(probeUpstream(target, { client, clock: wallClock, signal: AbortSignal.abort(new Error('enough')) }), {
    message: 'enough',
  })
})
