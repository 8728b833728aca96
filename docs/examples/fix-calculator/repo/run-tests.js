// Runs the tests of the files given, or of all of test/. One line per test; exit code 1 when one failed.

import { readdirSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const all = readdirSync('test')
  .filter(name => name.endsWith('.test.js'))
  .sort()
  .map(name => `test/${name}`)
const files = process.argv.length > 2 ? process.argv.slice(2) : all

for (const file of files) {
  const { tests } = await import(pathToFileURL(file).href)
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test()
      console.log(`PASSED ${file}::${name}`)
    } catch (error) {
      process.exitCode = 1
      console.log(`FAILED ${file}::${name} - ${String(error.message).split('\n')[0]}`)
    }
  }
}
