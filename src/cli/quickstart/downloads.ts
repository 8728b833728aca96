// What scripts/bootstrap.mjs downloaded for this project, as it noted beside node_modules.

import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isObject } from '../../domain/json.js'

const NOTE = fileURLToPath(new URL('../../../../node_modules/.sextant-installed.json', import.meta.url))

/** Growth of npm's cache during `npm ci`, bytes; 0 when everything was there. */
export function installedBytes(): number {
  if (!existsSync(NOTE)) return 0
  const note: unknown = JSON.parse(readFileSync(NOTE, 'utf8'))
  return isObject(note) && typeof note.downloadedBytes === 'number' ? note.downloadedBytes : 0
}
