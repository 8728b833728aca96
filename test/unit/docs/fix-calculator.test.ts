// The bundled task is a valid task, its repository fails as it stands, and a right fix gives exactly the results it expects.

import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { taskSchema } from '../../../src/api/task-schema.js'
import { compareResults, parseTestLog } from '../../../src/evaluators/shared/test-log.js'
import { fixes } from '../../../src/simulation/policy/scripts/median-fixes.js'
import { runCommand } from '../../support/harness-tools.js'
import { projectRoot } from '../../support/paths.js'
import { calculatorRepository } from '../../support/simulation.js'

const example = `${projectRoot}/docs/examples/fix-calculator`
const body: unknown = JSON.parse(readFileSync(`${example}/task.json`, 'utf8').replaceAll('$' + '{exampleDir}', example))

t.test('the task is accepted by the contract', async t => {
  const { success, data, error } = taskSchema.safeParse(body)
  t.ok(success, error?.message ?? 'accepted')
  t.match(data, {
    num_samples: 4,
    instruction: /^Scenario: fix-calculator$/m,
    runtime: { backend: 'local', prepare: [{ source: `${example}/repo` }, { type: 'exec' }] },
    evaluator: { strategy: 'test_on_output' },
    sampling: { seed: { value: 7 } },
  })
})

async function grade(t: Test, change: string | null): Promise<boolean> {
  const folder = await calculatorRepository(t)
  if (change !== null) await writeFile(`${folder}/src/median.js`, change)
  const config = taskSchema.parse(body).evaluator?.config ?? {}
  const output = await runCommand(String(config['test_command']), folder)
  const expected = config['expected_output_json'] as Record<string, string>
  return compareResults(parseTestLog(output), expected, 'exact').resolved
}

t.test('as it stands it is not solved; a right fix solves it, a wrong one does not', async t => {
  const [right, wrong] = [fixes().find(fix => fix.right), fixes().find(fix => !fix.right)]
  t.equal(await grade(t, null), false)
  t.equal(await grade(t, `// Middle${right?.code}`), true)
  t.equal(await grade(t, `// Middle${wrong?.code}`), false)
})

t.test('the calculator runs from its command line', async t => {
  const folder = await calculatorRepository(t)
  t.equal(await runCommand('node src/cli.js mean 1 2 6', folder), '3\n')
  t.match(await runCommand('node src/cli.js mean one', folder), /wanted numbers/)
})
