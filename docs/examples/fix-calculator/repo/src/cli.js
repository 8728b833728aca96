// node src/cli.js OPERATION NUMBER...

import { calculate } from './calculator.js'

const [name = '', ...given] = process.argv.slice(2)
const numbers = given.map(Number)
if (numbers.some(Number.isNaN)) {
  console.error('wanted numbers')
  process.exitCode = 2
} else {
  console.log(calculate(name, numbers))
}
