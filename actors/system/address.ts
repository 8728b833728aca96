// Addresses as text: keys for maps, children's paths, which names are allowed. A path begins and ends with a slash.

import { RolloutError } from '../../src/domain/errors.js'
import type { Address } from './ref.js'

const NAME = /^[A-Za-z0-9_.:-]{1,128}$/
/** Paths of temporary reply addresses; no actor may be called so at the top. */
export const ASK_ROOT = '/ask/'

/** `main:/stages/`: for maps and logs. */
export const addressKey = ({ system, path }: Address): string => `${system}:${path}`

/** Path of the child `name` under `parentPath`. Throws INTERNAL_BUG when the name has other characters than letters, digits, `_ . : -`. */
export function childPath(parentPath: string, name: string): string {
  if (!NAME.test(name))
    throw new RolloutError('INTERNAL_BUG', `actor name ${JSON.stringify(name)}: letters, digits, _ . : - wanted`)
  const path = `${parentPath}${name}/`
  if (path === ASK_ROOT) throw new RolloutError('INTERNAL_BUG', 'actor name "ask" is reserved at the top')
  return path
}

export const isAskPath = (path: string): boolean => path.startsWith(ASK_ROOT)

/** True for plain `{ system, path }`; used where data comes from another thread. */
export function isAddress(value: unknown): value is Address {
  if (typeof value !== 'object' || value === null) return false
  const { system, path } = value as { system?: unknown; path?: unknown }
  return typeof system === 'string' && typeof path === 'string' && path.startsWith('/') && path.endsWith('/')
}
