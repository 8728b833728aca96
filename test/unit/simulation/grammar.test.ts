// The grammar's conditional distributions are those of the language it describes, and parts meet where the tokenizer cuts.

import { writeFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { drawFrom, entropyBits } from '../../../src/simulation/distribution.js'
import {
  canonical,
  choice,
  compile,
  maybe,
  oneOf,
  type Part,
  sequence,
  walk,
} from '../../../src/simulation/policy/grammar.js'
import { answerPart } from '../../../src/simulation/policy/policy.js'
import { lead, phrase, prose } from '../../../src/simulation/policy/prose.js'
import { fixes } from '../../../src/simulation/policy/scripts/median-fixes.js'
import { seededRandom } from '../../../src/simulation/random.js'
import { loadTokenizer } from '../../../src/tokenizer/tokenizer.js'
import { runCommand } from '../../support/harness-tools.js'
import { calculatorRepository } from '../../support/simulation.js'

const qwen3 = loadTokenizer('qwen3')
const spell = canonical(qwen3)
const END = '<|im_end|>'

/** Probability of exactly `text`, by multiplying the conditionals along its ids. */
function probabilityOf(part: Part, text: string): number {
  const walking = walk(compile(part, spell))
  let probability = 1
  for (const id of qwen3.encode(text)) {
    const candidate = walking.next()?.find(one => one.id === id)
    if (!candidate) return 0
    probability *= candidate.probability
    walking.take(id)
  }
  return walking.next() === null ? probability : 0
}

const near = (t: Test, found: number, wanted: number, name: string) =>
  t.ok(Math.abs(found - wanted) < 1e-12, `${name}: ${found}, wanted ${wanted}`)

t.test('alternatives that share beginnings have their own weights in the end', async t => {
  const part = sequence(
    choice([
      { weight: 3, part: 'node run-tests.js' },
      { weight: 1, part: 'node run-tests.js test/median.test.js' },
      { weight: 4, part: sequence('node', ' run', choice([{ weight: 1, part: '-tests.js' }])) },
    ]),
    END,
  )
  near(t, probabilityOf(part, `node run-tests.js${END}`), 7 / 8, 'two ways to one text')
  near(t, probabilityOf(part, `node run-tests.js test/median.test.js${END}`), 1 / 8, 'the longer one')
  t.equal(probabilityOf(part, `node${END}`), 0)
})

t.test('optional parts and phrases multiply', async t => {
  near(t, probabilityOf(sequence('a', maybe(0.25, ' b'), END), `a b${END}`), 0.25, 'maybe')
  near(t, probabilityOf(sequence('a', maybe(0.25, ' b'), END), `a${END}`), 0.75, 'maybe not')
  const part = sequence(phrase('the {red|blue|} {fish|bird} swims'), END)
  near(t, probabilityOf(part, `the red fish swims${END}`), (6 / 13) * (3 / 5), 'phrase')
  near(t, probabilityOf(part, `the bird swims${END}`), (3 / 13) * (2 / 5), 'phrase with an empty option')
  const sentences = sequence(prose('One', { probability: 0.5, sentence: oneOf('Two', 'Three') }), '.', END)
  near(t, probabilityOf(sentences, `One. Two.${END}`), 0.5 * 0.6, 'prose')
})

t.test('a loop ends with its own probability', async t => {
  const part = sequence('go', { body: ' on', end: 0.25 }, '.', END)
  near(t, probabilityOf(part, `go on.${END}`), 0.25, 'once')
  near(t, probabilityOf(part, `go on on on.${END}`), 0.75 * 0.75 * 0.25, 'three times')
  t.equal(probabilityOf(part, `go.${END}`), 0)
})

t.test('each distribution sums to 1 and holds no impossible id', async t => {
  const part = answerPart(
    {
      messages: [{ role: 'user', content: 'Scenario: fix-calculator' }],
      tools: [{ name: 'bash', schema: {} }],
      mustCall: undefined,
      schema: undefined,
      thinking: true,
    },
    { solveProbability: 0.5, drift: new Set() },
  )
  const random = seededRandom('sum')
  const program = compile(part, spell)
  for (let round = 0; round < 20; round++) {
    const walking = walk(program)
    for (let next = walking.next(); next !== null; next = walking.next()) {
      const sum = next.reduce((total, { probability }) => total + probability, 0)
      if (Math.abs(sum - 1) > 1e-9 || next.some(({ probability }) => probability <= 0)) t.fail(`sum ${sum}`)
      if (entropyBits(next) < 0) t.fail('negative entropy')
      walking.take(drawFrom(next, random).id)
    }
  }
  t.pass('20 walks')
})

t.test('what cannot be drawn is refused', async t => {
  t.throws(() => compile('', spell), /at least one token/)
  t.throws(() => walk(compile(sequence('a', maybe(0.5, 'b')), spell)).take(64), /needs something behind it/)
  t.throws(() => lead(' ', ''), /empty part/)
  const walking = walk(compile(sequence('a', END), spell))
  t.throws(() => walking.take(5), /not a candidate/)
})

t.test('every version of the fix does what it says: right ones pass all tests, wrong ones do not', async t => {
  const folder = await calculatorRepository(t)
  const all = fixes()
  t.ok(all.some(fix => fix.right) && all.some(fix => !fix.right))
  for (const [index, { right, code }] of all.entries()) {
    await writeFile(`${folder}/src/median.js`, `// Middle${code}`)
    const output = await runCommand('node run-tests.js', folder)
    t.match(output, /PASSED test\/median\.test\.js::odd_count_takes_the_middle/)
    t.equal(!output.includes('FAILED'), right, `version ${index}`)
  }
})
