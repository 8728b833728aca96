// What a server samples with, and what its logprobs are of. It is asked for temperature 1 without cuts, then for temperature 2, then
// for nothing at all; what it draws is compared with what it reports. Raw logprobs of uncut draws are the policy's own.

import type { SamplingInForce } from '../../domain/completion.js'
import type { UpstreamAnswer, UpstreamErrorInfo } from '../base.js'
import { type Asker, type AskOptions, inBrief, user } from './asking.js'
import { type Draw, drawsOf } from './draws.js'
import { fault, note, ok, type ProbeFacts, type ProbeFinding, warning } from './report.js'
import { type DrawsJudged, gapRatio, judgeDraws, uncertainIn } from './statistics.js'

export interface SamplingProbed {
  readonly findings: readonly ProbeFinding[]
  readonly facts: Pick<ProbeFacts, 'logprobs' | 'defaults' | 'wouldShow'>
  /** Of the neutral calls. */
  readonly answers: readonly UpstreamAnswer[]
}

/** A question whose answers differ a lot from one another. */
const QUESTION = user('Write the opening of a strange short story about a lighthouse keeper. Surprise me.')
/** vLLM gives no more by default. */
const MOST_LISTED = 20
const FEW_LISTED = 5
/** The gap of two likely tokens needs two beside the drawn one, which vLLM puts first whatever its rank. */
const LEAST_LISTED = 3
const CALLS_A_ROUND = 6
/** A model that is sure of nearly all it says needs many. */
const ROUNDS = 12
const HOT_ROUNDS = 2
const BARE_ROUNDS = 4
/** Tokens an answer; the first ones are the most alike, so longer answers tell more. */
const LENGTH = 96
/** With fewer uncertain draws nothing is proven. */
const LEAST_UNCERTAIN = 60
const PLENTY_UNCERTAIN = 1_200
/** Tokens among which one is not sure; a server need not list what cannot come. */
const FIRST_WORDS = 12
/** What engines say when they have drawn an answer and cannot give it; others tell of a busy server, or of the way to it. */
const ANSWER_LOST = 500
/** Of the answers may fail and leave the others what the policy draws, as far as these tests can tell. */
const FEW_FAIL = 0.02
const SAMPLING_FIELDS = [
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
]
const DEFAULTS_CURE =
  'vLLM: `--generation-config vllm`, no `--override-generation-config`; no router that rewrites sampling parameters'

/** `declared`: `upstreams[].sampling` by wire name. `isLate`: no more rounds than needed, please. */
export async function probeSampling(
  ask: Asker,
  declared: Readonly<Record<string, number>>,
  isLate: () => boolean,
): Promise<SamplingProbed> {
  const listed = await mostListed(ask)
  if (listed === 0) {
    const seen = `the server lists no ${LEAST_LISTED} likely tokens with the sampled ones, so its sampling cannot be checked`
    const finding = fault('sampling', 'sampling_unproven', seen, 'vLLM: `--max-logprobs 20`')
    return { findings: [finding], facts: { logprobs: null, defaults: null, wouldShow: [] }, answers: [] }
  }
  const extra = { top_logprobs: listed, return_tokens_as_token_ids: true }
  const failures: UpstreamErrorInfo[] = []
  let asks = 0
  const round = async (sampling: Partial<SamplingInForce>, without: readonly string[] = []) => {
    const options: AskOptions = { messages: [QUESTION], sampling: { maxTokens: LENGTH, ...sampling }, extra, without }
    const asked = await Promise.all(Array.from({ length: CALLS_A_ROUND }, () => ask.generate(options)))
    asks += asked.length
    for (const one of asked) if (!one.ok && one.error.status === ANSWER_LOST) failures.push(one.error)
    return asked.flatMap(one => (one.ok ? [one.answer] : []))
  }

  const rounds = async (count: number, sampling: Partial<SamplingInForce>, without: readonly string[] = []) => {
    const answers: UpstreamAnswer[] = []
    for (let turn = 0; turn < count; turn += 1) {
      answers.push(...(await round(sampling, without)))
      if (isLate() || uncertainIn(drawsIn(answers)) >= PLENTY_UNCERTAIN) break
    }
    return answers
  }

  const answers = await rounds(ROUNDS, {})
  const hot = drawsIn(await rounds(HOT_ROUNDS, { temperature: 2 }))
  const neutral = judgeDraws(drawsIn(answers), 1)
  const gap = gapRatio(drawsIn(answers), hot)
  const logprobs = semanticsOf(gap)
  const bare = judgeDraws(drawsIn(await rounds(BARE_ROUNDS, {}, SAMPLING_FIELDS)), 1)
  const defaults =
    bare.cut === null && bare.temperature === null
      ? null
      : { temperature: bare.temperature, cut: bare.cut?.name ?? null }
  const isSelection = failures.length > FEW_FAIL * asks
  return {
    findings: [
      semanticsFinding(logprobs, gap),
      ...(isSelection ? [selectionFinding(failures, asks)] : []),
      // Logprobs after temperature and cuts say nothing of what was cut away.
      ...(isSelection || logprobs === 'processed' ? [] : [samplingFinding(neutral, judgeDraws(hot, 2))]),
      defaultsFinding(defaults, declared, bare),
    ],
    facts: { logprobs, defaults, wouldShow: neutral.wouldShow },
    answers,
  }
}

const drawsIn = (answers: readonly UpstreamAnswer[]): readonly Draw[] =>
  answers.flatMap(({ logprobContent }) => drawsOf(logprobContent ?? []))

/** How many likely tokens the server lists at most, of what the probe would like. */
async function mostListed(ask: Asker): Promise<number> {
  for (const count of [MOST_LISTED, FEW_LISTED]) {
    const asked = await ask.generate({
      messages: [QUESTION],
      sampling: { maxTokens: FIRST_WORDS },
      extra: { top_logprobs: count },
    })
    if (asked.ok) return drawsIn([asked.answer]).some(({ list }) => list.length >= LEAST_LISTED) ? count : 0
  }
  return 0
}

function semanticsOf(gap: ReturnType<typeof gapRatio>): ProbeFacts['logprobs'] {
  if (gap === null) return null
  if (gap.ratio > 0.85 && gap.ratio < 1.15) return 'raw'
  return gap.ratio > 0.4 && gap.ratio < 0.6 ? 'processed' : null
}

function semanticsFinding(logprobs: ProbeFacts['logprobs'], gap: ReturnType<typeof gapRatio>): ProbeFinding {
  const cure =
    'vLLM: `--logprobs-mode raw_logprobs` (its default); SGLang: SGLANG_RETURN_ORIGINAL_LOGPROB=1 in its environment'
  const measured = gap && `the gap between likely tokens at temperature 2 is ${gap.ratio.toFixed(2)} of that at 1`
  if (logprobs === 'raw') return ok('logprob_semantics', `raw: ${measured}`)
  if (logprobs === 'processed') {
    return fault('logprob_semantics', 'logprobs_processed', `after temperature and cuts: ${measured}`, cure)
  }
  const seen = measured ?? 'no two likely tokens were met in the same place at temperature 1 and 2'
  return fault('logprob_semantics', 'logprob_semantics_unproven', seen, cure)
}

/** What a server fails to answer it has drawn all the same: the rest does not follow the policy, however it was drawn. */
function selectionFinding(failures: readonly UpstreamErrorInfo[], asks: number): ProbeFinding {
  const said = failures[0] === undefined ? '' : ` (${failures[0].status}: ${inBrief(failures[0].message)})`
  const seen = `${failures.length} of ${asks} answers fail${said}: those that come are a selection of what the policy draws`
  return fault('sampling', 'answers_fail', seen, 'an engine, parser or template that takes whatever the model writes')
}

function samplingFinding(neutral: DrawsJudged, hot: DrawsJudged): ProbeFinding {
  const asked = 'asked for temperature 1 without cuts'
  const cut = [neutral.cut, hot.cut].filter(found => found !== null).sort((a, b) => b.expected - a.expected)[0]
  if (cut !== undefined) {
    return fault(
      'sampling',
      'sampling_truncated',
      `${asked}, it draws as with ${cut.name}: of ${neutral.draws} tokens ${cut.expected.toFixed(0)} should have fallen outside, ` +
        `${cut.seen} did; logprobs are reported as if nothing were cut`,
      DEFAULTS_CURE,
    )
  }
  if (neutral.temperature !== null || hot.temperature !== null) {
    const seen =
      neutral.temperature !== null
        ? `${asked}, it draws as with temperature ${neutral.temperature}`
        : `asked for temperature 2, it draws as with ${hot.temperature}`
    return fault('sampling', 'temperature_not_applied', seen, DEFAULTS_CURE)
  }
  if (neutral.isSkewed || hot.isSkewed) {
    const seen = `${asked}, the drawn tokens do not follow the reported distribution (a penalty, or another cut)`
    return fault('sampling', 'sampling_not_as_reported', seen, DEFAULTS_CURE)
  }
  if (neutral.uncertain < LEAST_UNCERTAIN) {
    const seen = `only ${neutral.uncertain} of ${neutral.draws} sampled tokens were uncertain: too few to tell a cut`
    return fault('sampling', 'sampling_unproven', seen, 'a base model or a checkpoint that still explores')
  }
  const shown = neutral.wouldShow.length === 0 ? '' : ` (would have shown: ${neutral.wouldShow.join(', ')} or stricter)`
  return ok('sampling', `${neutral.draws} draws follow the reported distribution${shown}`)
}

function defaultsFinding(
  defaults: ProbeFacts['defaults'],
  declared: Readonly<Record<string, number>>,
  bare: DrawsJudged,
): ProbeFinding {
  if (defaults === null) {
    if ((declared['temperature'] ?? 1) !== 1 && bare.uncertain >= LEAST_UNCERTAIN) {
      const seen = `upstreams[].sampling declares temperature ${declared['temperature']}, but it draws as with 1`
      return warning('defaults', 'defaults_not_as_declared', seen, 'mend upstreams[].sampling')
    }
    return ok('defaults', 'a request without sampling parameters is drawn from as it is reported')
  }
  const { temperature, cut } = defaults
  const parts = [...(temperature === null ? [] : [`temperature ${temperature}`]), ...(cut === null ? [] : [cut])]
  const seen = `a request without sampling parameters is drawn with the model's own defaults, about ${parts.join(' or ')}`
  return note('defaults', `${seen}; the gateway names its own in every call`, DEFAULTS_CURE)
}
