// The bundled task (docs/examples/fix-calculator): look around, read the failing test and the source, write a fix that is right or
// wrong by chance, run the tests, say what came of it. Where the script stands is read from the commands and results so far.

import type { Reply } from '../answer.js'
import type { PastCall } from '../conversation.js'
import { choice, oneOf, type Part, sequence } from '../grammar.js'
import { phrase, phrases, prose } from '../prose.js'
import { finish, run, type Script, type ScriptContext } from '../script.js'
import type { ShellTool } from '../tools.js'
import { COMMENT, fixes } from './median-fixes.js'

/** A step that failed this often is given up. */
const PATIENCE = 3
/** No task of this size takes more turns. */
const MOST_TURNS = 24

const TEST = 'test/median.test.js'
const SOURCE = 'src/median.js'

export const fixCalculator: Script = context => {
  const { conversation, shell } = context
  if (shell === null) return [finish(...NO_SHELL)]
  const progress = readProgress(conversation.calls)
  if (progress.failures >= PATIENCE || conversation.assistantTurns >= MOST_TURNS) return [finish(...GIVE_UP)]
  if (progress.verdict !== null) return [progress.verdict === 'passed' ? finish(...SOLVED) : finish(...UNSOLVED)]
  if (progress.wrote) return [runTests(shell, 1)]
  if (progress.readSource && progress.readTest) {
    return [write(shell, context, 0.9), ...(progress.ranTests ? [] : [runFirst(shell, 0.1)])]
  }
  return explore(shell, progress)
}

interface Progress {
  readonly looked: boolean
  readonly ranTests: boolean
  readonly readTest: boolean
  readonly readSource: boolean
  readonly wrote: boolean
  /** Of the last test run after the fix; null before it. */
  readonly verdict: 'passed' | 'failed' | null
  /** How many calls in a row came to nothing. */
  readonly failures: number
}

function readProgress(calls: readonly PastCall[]): Progress {
  let progress: Progress = {
    looked: false,
    ranTests: false,
    readTest: false,
    readSource: false,
    wrote: false,
    verdict: null,
    failures: 0,
  }
  for (const call of calls) {
    const next = advance(progress, call.text, call.result ?? '')
    progress = next === null ? { ...progress, failures: progress.failures + 1 } : { ...next, failures: 0 }
  }
  return progress
}

/** The progress after a call; null when it came to nothing. */
function advance(progress: Progress, command: string, result: string): Progress | null {
  if (/>\s*src\/median\.js/.test(command)) {
    const refused = /permission denied|not permitted|read-only|rejected|denied by|syntax error|no such file/i.test(
      result,
    )
    return refused ? null : { ...progress, wrote: true, verdict: null }
  }
  if (command.includes('run-tests.js')) {
    if (!/\b(PASSED|FAILED) \S+::/.test(result)) return null
    const verdict = /\bFAILED \S+::/.test(result) ? 'failed' : 'passed'
    return { ...progress, ranTests: true, verdict: progress.wrote ? verdict : null }
  }
  const readTest = command.includes(TEST) && result.includes('assert')
  const readSource = command.includes(SOURCE) && result.includes('export function median')
  if (readTest || readSource) {
    return { ...progress, readTest: progress.readTest || readTest, readSource: progress.readSource || readSource }
  }
  return /\bls\b|ls-files/.test(command) && /run-tests\.js|median/.test(result) ? { ...progress, looked: true } : null
}

function explore(shell: ShellTool, progress: Progress): readonly Reply[] {
  // After a failure the plainest command is tried.
  const read = (weight: number, what: 'both' | 'test' | 'source'): Reply =>
    run(shell, 'read', {
      weight,
      thought: READ_THOUGHTS[what],
      say: READ_SAYS,
      command: READS[what](progress.failures > 0),
    })
  if (progress.readTest) return [read(1, 'source')]
  if (progress.readSource) return [read(1, 'test')]
  const look = run(shell, 'look', { weight: 0.4, thought: LOOK_THOUGHT, say: LOOK_SAY, command: LOOK })
  return [
    ...(progress.looked ? [] : [look]),
    ...(progress.ranTests ? [] : [runFirst(shell, 0.15)]),
    read(0.35, 'both'),
    read(0.1, 'test'),
  ]
}

const RUN = oneOf('node run-tests.js', 'node run-tests.js test/median.test.js')

const runFirst = (shell: ShellTool, weight: number): Reply =>
  run(shell, 'test', { weight, thought: RUN_FIRST_THOUGHT, say: RUN_SAY, command: RUN })

const runTests = (shell: ShellTool, weight: number): Reply =>
  run(shell, 'test', { weight, thought: RUN_THOUGHT, say: RUN_SAY, command: RUN })

const write = (shell: ShellTool, { solveProbability }: ScriptContext, weight: number): Reply =>
  run(shell, 'write', { weight, thought: WRITE_THOUGHT, say: WRITE_SAY, command: writeCommand(solveProbability) })

function writeCommand(solveProbability: number): Part {
  const shares = { right: solveProbability, wrong: 1 - solveProbability }
  const all = fixes()
  const counts = { right: all.filter(fix => fix.right).length, wrong: all.filter(fix => !fix.right).length }
  // The command goes on behind the here-document: some harnesses put a semicolon after the last line. Both stand in one text with
  // the file, since an escaped line feed and the word behind it are one pre-token.
  const file = choice(
    all.flatMap(({ right, code }) =>
      ['git diff --stat', `wc -l ${SOURCE}`].map((after, place) => ({
        weight: ((right ? shares.right / counts.right : shares.wrong / counts.wrong) * (2 - place)) / 3,
        part: `${code}EOF\n${after}`,
      })),
    ),
  )
  return sequence(`cat > ${SOURCE} <<'EOF'\n//`, COMMENT, file)
}

const LOOK = oneOf('ls', 'git ls-files', 'ls src test', 'ls -R src test')

const READS = {
  both: (plain: boolean): Part =>
    plain
      ? `cat ${SOURCE} ${TEST}`
      : oneOf(`cat ${TEST} ${SOURCE}`, `cat ${SOURCE} ${TEST}`, `head -n 80 ${SOURCE} ${TEST}`),
  test: (plain: boolean): Part =>
    plain ? `cat ${TEST}` : oneOf(`cat ${TEST}`, `sed -n 1,80p ${TEST}`, `head -n 60 ${TEST}`),
  source: (plain: boolean): Part =>
    plain ? `cat ${SOURCE}` : oneOf(`cat ${SOURCE}`, `sed -n 1,40p ${SOURCE}`, `cat -n ${SOURCE}`),
}

const LOOK_THOUGHT = prose(
  phrases(
    '{The|This} {task|request|job} is {about|to repair} {the median|a median function|one function}',
    'I {need|have|want} to {find|locate|understand} the {median|failing} {code|function|tests} {first|before anything else}',
    '{Let me|I will} {start|begin} by {looking at|listing|checking} the {repository|project|files}',
  ),
  {
    probability: 0.6,
    sentence: phrases(
      'A {quick|short|first} {look|listing} {shows|tells me} {where|how} {things|files|tests} are {laid out|kept|named}',
      'Then I {can|will|should} {read|open} the {failing|median} {test|tests} and the {source|code}',
    ),
  },
)
const LOOK_SAY = phrase('{Let me|I will} {look at|check|see} {what is here|the files|the project} {first|}')

const READ_THOUGHTS = {
  both: prose(
    phrases(
      'I {should|will|want to} {read|see|compare} the {test|failing test} {and|together with} the {source|code|function}',
      '{Reading|Seeing} {both files|the test and the source} {together|at once|side by side} {saves|spares} a {step|turn}',
    ),
    {
      probability: 0.6,
      sentence: phrases(
        'The {test|assertion} {says|tells|shows} {what|which result} is {wanted|expected}, the {source|code} {shows|says} what {happens|is done}',
        '{That|This} {should|will} {show|tell} {where|why} the {result|median} {goes wrong|differs|is off}',
      ),
    },
  ),
  test: prose(
    phrases(
      'The {failing|median} {test|tests} {will|should} {say|show|tell} {what|which behaviour} is {wanted|expected}',
      'I {start|begin} with the {test|tests}, {since|because} {it is|that is} the {contract|specification}',
    ),
    { probability: 0.4, sentence: phrases('{After|Once} that I {will|can} {read|open} the {source|function}') },
  ),
  source: prose(
    phrases(
      '{Now|Next} the {source|function|code} {itself|}',
      'The {tests|cases} {look|seem} {clear|simple|reasonable}, so {the|this} {bug|mistake|fault} {must be|is} in the {source|function}',
    ),
    {
      probability: 0.5,
      sentence: phrases('I {expect|suspect} {something|a mistake} {in|around} the {sorting|order|middle}'),
    },
  ),
}
const READ_SAYS = phrase('{I will|Let me} {read|look at|open} the {relevant|} {code|files} {now|next|}')

const RUN_FIRST_THOUGHT = prose(
  phrases(
    '{Running|Seeing} the tests {first|now} {shows|tells me} {what|which of them} {fails|fail} {today|at the moment|right now}',
    'I {want|need|would like} to {see|know} the {failures|failing cases} {before|ahead of} {reading|changing} {anything|code}',
  ),
)
const RUN_THOUGHT = prose(
  phrases(
    'The {fix|change|new version} is {written|in place}, {now|so now} the {tests|suite} {must|should|can} {judge|decide|check} it',
    '{Time|Now it is time} to {run|repeat} the {tests|suite} and {see|check} {whether|if} {all|everything} {passes|is green}',
    'I {should|must|will} {verify|check|confirm} {this|the change} {with|by running} the {tests|suite}',
  ),
  { probability: 0.4, sentence: phrases('{Nothing|No test} {else|in the rest} {should|may} {break|change|fail}') },
)
const RUN_SAY = phrase('{Running|Now running} the {tests|test suite} {now|}')

const WRITE_THOUGHT = prose(
  phrases(
    'The {list|array} is {sorted|ordered} {as text|as strings|by its text}, {which|and that} {puts|places} ten {before|ahead of} two',
    '{Sorting|The sort} {works|happens} on the {list|array} of the caller {and|which} {changes|reorders} it',
    'For an even {count|number of values} the {median|result} {must|should} be the {mean|average} of {both|the two} {middle|central} values',
  ),
  {
    probability: 0.7,
    sentence: phrases(
      'I {should|will|need to} {compare|sort} {numbers|by value} {and|then} {handle|treat} the {middle|even case} {with care|properly}',
      '{So|Hence} {three|several} {things|points} {matter|count} here, the {copy|list}, the {order|sorting} and the {middle|even case}',
    ),
  },
  {
    probability: 0.5,
    sentence: phrases(
      'The {file|function} is {short|small}, so I {write|rewrite|replace} it {whole|as a whole|completely}',
      '{A|One} {small|short} {rewrite|change} of the {function|file} {will do|is enough}',
    ),
  },
)
const WRITE_SAY = phrase('{I found|I see} the {problem|cause|bug} and {will|now} {fix|correct|rewrite} the function')

const SOLVED = [
  prose(
    phrases(
      '{All|All of the} tests {pass|are green}, {so|which means} the {work|task|fix} is {done|complete|finished}',
      'The {output|run} {shows|has} {no|not one} {failure|failing test}, {I can|so I} {stop|finish} here',
    ),
  ),
  prose(
    phrases(
      '{The|All} tests {pass|are green} {now|again}',
      'The {median|median operation} is {fixed|corrected|repaired} and {all|the} tests pass',
    ),
    {
      probability: 0.9,
      sentence: phrases(
        'It {sorted|ordered} the {numbers|values} as text, {changed|reordered} the {given|original} list and {ignored|forgot} the even {case|count}',
        'The {cause|problem} was {the|a} sort {by text|of strings} {on|in} the {given|original} list and a {missing|forgotten} mean for even {counts|lists}',
      ),
    },
  ),
] as const

const UNSOLVED = [
  prose(
    phrases(
      '{Some|One or more} tests {still|yet} fail, {but|and yet} the {change|fix} {looks|seems} {right|reasonable|plausible} to me',
      'The {run|output} {still|} {shows|has} a {failure|failing test}, {I will|so I} {report|say} that {plainly|as it is}',
    ),
  ),
  prose(
    phrases(
      'I {changed|rewrote} the {median|median function}, but {some tests|one or more tests} {still fail|keep failing}',
      'The {median|median function} is {changed|rewritten}, {yet|but} {at least one|some} test {fails|still fails}',
    ),
    {
      probability: 0.5,
      sentence: phrases('The {remaining|other} {failure|case} {needs|wants} {another|a closer} look'),
    },
  ),
] as const

const GIVE_UP = [
  prose(phrases('The {commands|calls} {keep|go on} {failing|coming to nothing}, {so I|and I} {stop|give up} here')),
  prose(
    phrases(
      'I {could not|was not able to} {complete|finish} the {task|work}, the {commands|tools} {failed|did not work}',
    ),
  ),
] as const

const NO_SHELL = [
  prose(phrases('{There is|I see} no tool {to run|for} {commands|shell commands} here')),
  prose(phrases('I {cannot|am not able to} {work on|change} the {files|repository} without a {shell|shell tool}')),
] as const
