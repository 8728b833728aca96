// Requests beside the work: no tools, or a summary of the conversation asked for. Titles, routers with a JSON schema,
// compaction, quota probes: each gets a short answer of the kind it asks for.

import { isObject } from '../../../domain/json.js'
import { dumpJson } from '../../../tokenizer/python-json.js'
import type { Reply } from '../answer.js'
import type { Conversation } from '../conversation.js'
import { oneOf, type Part, sequence } from '../grammar.js'
import { phrase, phrases, prose } from '../prose.js'
import { finish } from '../script.js'
import { instanceOf, typeOf } from '../tools.js'

/** A harness with full tools asks for a text-only summary when its history grows too long. */
export const asksForSummary = (conversation: Conversation): boolean =>
  conversation.userSpokeLast &&
  conversation.assistantTurns > 0 &&
  /<summary>|<state_snapshot>|summar(y|ize|ise) (of )?(the|our|this|your) (conversation|session|chat)/i.test(
    conversation.lastUser,
  )

/** `schema`: of the JSON the request wants; undefined = it wants text, null = any JSON object. */
export function sideReply(conversation: Conversation, schema: unknown): Reply {
  if (schema !== undefined) {
    return { weight: 1, thought: JSON_THOUGHT, say: jsonPart(schema ?? { type: 'object' }), closed: true, calls: [] }
  }
  const asked = `${conversation.system}\n${conversation.lastUser}`
  if (/<state_snapshot>/.test(asked)) return tagged('state_snapshot')
  if (/<summary>/.test(asked)) return tagged('summary')
  if (/\btitle\b/i.test(asked)) return { ...finish(TITLE_THOUGHT, TITLE), closed: true }
  if (/summar/i.test(asked)) return finish(SUMMARY_THOUGHT, SUMMARY)
  return finish(SHORT_THOUGHT, SHORT)
}

const tagged = (tag: string): Reply => ({
  weight: 1,
  thought: SUMMARY_THOUGHT,
  say: sequence(`<${tag}>\n`, SUMMARY, `.\n</${tag}>`),
  closed: true,
  calls: [],
})

/** An instance of `schema` whose texts vary. Only what is required is written, in the schema's order. */
function jsonPart(schema: unknown): Part {
  const properties = isObject(schema) && isObject(schema['properties']) ? schema['properties'] : null
  const instance = instanceOf(schema)
  if (properties === null || !isObject(instance)) return dumpJson(instance)
  const parts: Part[] = []
  // Letters begin and end each varying text; everything between two of them is one text.
  let literal = '{'
  Object.entries(instance).forEach(([key, value], index) => {
    literal += `${index > 0 ? ', ' : ''}${JSON.stringify(key)}: `
    if (typeOf(properties[key]) === 'string' && value === `some ${key}`) {
      parts.push(`${literal}"`, TEXTS)
      literal = '"'
    } else literal += dumpJson(value)
  })
  return sequence(...parts, `${literal}}`)
}

const TEXTS = oneOf(
  phrase('The {task|request|work} is {simple|clear|small} and {needs|takes} {one|a single} {step|change}'),
  phrase('{Fix|Correct|Repair} the {failing|median} {test|function}'),
)
const JSON_THOUGHT = phrases(
  '{Only|Just} the {object|JSON} is {wanted|asked for}',
  'I {answer|reply} {in|with} the {asked|given} {form|shape}',
)
const TITLE = oneOf(
  phrase('{Fixing|Correcting} the {median|calculator} {function|operation}'),
  phrase('{Failing|Broken} median {test|tests}'),
)
const TITLE_THOUGHT = phrases('A {short|brief} title is {enough|wanted}', '{Few|Some} words {will|should} do')
const SUMMARY = prose(
  phrases('The {user|task} {asks|wants} {for|} a {fix|correction} of the median {function|operation}'),
  { probability: 0.7, sentence: phrases('The {test|tests} and the {source|code} were {read|looked at}') },
  { probability: 0.5, sentence: phrases('{Next|After that} the {tests|suite} {must|should} be {run|repeated}') },
)
const SUMMARY_THOUGHT = phrases('I {sum up|write down} what {happened|was done} {so far|}')
const SHORT = phrases('{Understood|Noted|All right}', '{Yes|Fine}, {that|this} is {clear|understood}')
const SHORT_THOUGHT = phrases('A {short|brief} answer {will do|is enough}')
