// The rules by which echoed turns are put back as they were: each named, each with a switch; and joins that become exact over a server
// that leaves line feeds in its texts, with nothing changed of what is recorded as sampled.

import t from 'tap'
import { feedsOf } from '../../../../actors/proxy/template-feeds.js'
import { type RecordedTurn, TurnMemory } from '../../../../actors/proxy/turn-memory.js'
import type { CanonicalMessage } from '../../../../src/domain/conversation.js'
import type { JsonObject } from '../../../../src/domain/json.js'
import { loadTokenizer } from '../../../../src/tokenizer/tokenizer.js'
import { HARNESS_TOOLS } from '../../../support/harness-tools.js'
import { gatewayPlan, startPair } from '../../../support/pair.js'
import { simulate } from '../../../support/simulation.js'

const TURN: RecordedTurn = {
  content: '\n\nLet me look.\n',
  reasoning: 'Hm.',
  toolCalls: [{ id: 'call_a_b', name: 'ls', arguments: '{"path":  "."}' }],
}
const history: readonly CanonicalMessage[] = [{ role: 'user', content: 'go' }]
const echo: CanonicalMessage = {
  role: 'assistant',
  content: 'Let me look.  ',
  toolCalls: [{ id: 'callab', name: 'ls', arguments: '{"path":"."}' }],
}
const feeds = { afterThinking: 2, beforeCall: 1 }

function restoredBy(options: Parameters<TurnMemory['restore']>[1], turn = TURN, echoed = echo) {
  const memory = new TurnMemory()
  memory.remember(turn, history)
  const { messages, rules } = memory.restore([...history, echoed], options)
  return { message: messages[1], rules: [...rules].sort() }
}

t.test('every rule of an echoed turn is named, and changes nothing when it is off', async t => {
  const all = ['arguments_restored', 'call_ids_restored', 'line_feeds_left_to_template', 'reasoning_reattached']
  t.strictSame(restoredBy({ feeds }), {
    message: {
      role: 'assistant',
      content: 'Let me look.',
      reasoning: 'Hm.',
      toolCalls: TURN.toolCalls,
    },
    rules: all,
  })
  t.strictSame(restoredBy({}).message, {
    role: 'assistant',
    content: TURN.content,
    reasoning: 'Hm.',
    toolCalls: TURN.toolCalls,
  })
  t.strictSame(restoredBy({ off: new Set([...all, 'content_restored']), feeds }), { message: echo, rules: [] })
  for (const rule of all) {
    const { message, rules } = restoredBy({ off: new Set([rule]), feeds })
    t.notOk(rules.includes(rule as (typeof rules)[number]))
    t.notSame(message, restoredBy({ feeds }).message, rule)
  }
})

t.test('line feeds go by what the template writes, not by what looks tidy', async t => {
  const content = (turn: Partial<RecordedTurn>, known = feeds) => {
    const full = { ...TURN, ...turn }
    const echoed: CanonicalMessage = {
      role: 'assistant',
      content: full.content,
      ...(full.reasoning !== null && { reasoning: full.reasoning }),
      ...(full.toolCalls.length > 0 && { toolCalls: full.toolCalls }),
    }
    return restoredBy({ feeds: known }, full, echoed).message?.content
  }
  t.equal(content({ content: '\n\nText\n\n' }), 'Text\n', 'one of two before a call')
  t.equal(content({ content: '\n\n' }), '', 'nothing but the line feeds after the thinking')
  t.equal(content({ content: '\n\nText\n', toolCalls: [] }), 'Text\n', 'the end of a last answer is the model’s own')
  t.equal(content({ content: '\n\nText\n', reasoning: null }), '\n\nText', 'without thinking the model wrote the first')
  t.equal(content({ content: '\nText' }), '\nText', 'fewer than the template writes: no sound way')
  t.equal(content({}, { afterThinking: 0, beforeCall: 0 }), TURN.content, 'a template that writes none')
})

t.test('the probe of Qwen3’s own template tells its line feeds', async t => {
  const qwen3 = loadTokenizer('qwen3')
  const rendered = qwen3.renderChat({
    messages: [
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: 'Zq7xtext',
        reasoning_content: 'Rq7xthinking',
        tool_calls: [{ type: 'function', function: { name: 'f', arguments: {} } }],
      },
    ],
    tools: [],
    addGenerationPrompt: false,
    kwargs: {},
  })
  t.strictSame(feedsOf(rendered), feeds)
  t.strictSame(feedsOf('[INST] hi [/INST]Zq7xtext[CALLS]'), { afterThinking: 0, beforeCall: 0 })
})

type Message = JsonObject & {
  readonly content: string | null
  readonly tool_calls?: readonly { readonly id: string }[]
}

/** A tool loop of the harness `echoOf`, over a server that leaves line feeds in its texts. */
async function loop(
  t: Parameters<typeof startPair>[0],
  echoOf: (message: Message) => JsonObject,
  off: readonly string[],
  drift: readonly 'raw_whitespace'[] = ['raw_whitespace'],
) {
  const simulation = await simulate(t, { drift })
  const plan = gatewayPlan([
    { urls: [simulation.url], modelServed: 'policy', sampling: { temperature: 1, top_p: 1, top_k: -1 } },
  ])
  const pair = await startPair(t, { ...plan, rulesOff: off })
  const session = await pair.session('s-a', { samplingSeed: 3 })
  const messages: JsonObject[] = [{ role: 'user', content: 'Fix the median.\n\nScenario: fix-calculator' }]
  for (let turn = 0; turn < 8; turn += 1) {
    const body = { model: 'm', messages, tools: HARNESS_TOOLS['qwen_code'] ?? [] }
    const response = await pair.post('/v1/chat/completions', body, { key: session.key })
    const { choices } = (await response.json()) as { choices: { message: Message }[] }
    const message = choices[0]?.message
    if (message === undefined) throw new Error('no answer')
    messages.push(echoOf(message))
    for (const { id } of message.tool_calls ?? []) messages.push({ role: 'tool', tool_call_id: id, content: 'ok' })
    // A further question would let the template drop the thinking of all before it.
    if (message.tool_calls === undefined) break
  }
  const { calls } = await pair.ledger(session)
  const records = calls.map(({ record }) => record).sort((a, b) => a.sequence - b.sequence)
  const exact = records.slice(1).map((record, index) => {
    const before = [...(records[index]?.promptIds ?? []), ...(records[index]?.sampledIds ?? [])]
    return before.every((id, place) => record.promptIds?.[place] === id)
  })
  return { records, exact, rules: new Set(records.flatMap(({ rulesApplied }) => rulesApplied)) }
}

const asIs = (message: Message): JsonObject => message
const trimmed = ({ reasoning_content: _, reasoning: __, ...message }: Message): JsonObject => ({
  ...message,
  content: message.content === null ? null : message.content.trim(),
})

t.test('over a server that leaves line feeds in its texts every join is exact', async t => {
  const plain = await loop(t, asIs, [], [])
  for (const [name, echoOf] of Object.entries({ 'echoed as they are': asIs, 'trimmed, without thinking': trimmed })) {
    const { records, exact, rules } = await loop(t, echoOf, [])
    t.ok(exact.length >= 3)
    t.strictSame(
      exact,
      exact.map(() => true),
      name,
    )
    t.ok(rules.has('line_feeds_left_to_template') || echoOf === trimmed)
    t.strictSame(
      records.map(({ sampledIds, logprobs }) => [sampledIds, logprobs]),
      plain.records.map(({ sampledIds, logprobs }) => [sampledIds, logprobs]),
      'what was sampled is recorded as it was',
    )
    t.match(JSON.stringify(records[0]?.response), /"content":"\\n\\n/, 'and so is the text')
  }
})

t.test('with the rule off the same joins break', async t => {
  const { exact, rules } = await loop(t, asIs, ['line_feeds_left_to_template'])
  t.ok(exact.includes(false))
  t.notOk(rules.has('line_feeds_left_to_template'))
})
