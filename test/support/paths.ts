// Where the project lies, seen from compiled tests in dist/test/.
import { fileURLToPath } from 'node:url'

/** Absolute, without a trailing slash. */
export const projectRoot = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')
