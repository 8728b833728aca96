// Committed expectations that a person reads as a diff. UPDATE_GOLDEN=1 rewrites them; the diff is the review.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { projectRoot } from './paths.js'

/** Compares `actual` with `test/fixtures/<name>`, as text. */
export function golden(t: Test, name: string, actual: string): void {
  const path = join(projectRoot, 'test', 'fixtures', name)
  if (process.env.UPDATE_GOLDEN === '1') {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, actual)
  }
  t.equal(actual, readFileSync(path, 'utf8'), `test/fixtures/${name} (UPDATE_GOLDEN=1 rewrites it)`)
}
