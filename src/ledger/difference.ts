// JSON values by what changed: a session's calls repeat most of what they say about themselves. Pure.

import type { Json, JsonObject } from '../domain/json.js'

/** An object by its difference from an earlier one: keys that are other or fresh, and the names of those that are gone. */
export interface ObjectChange {
  readonly set: JsonObject
  readonly gone?: readonly string[]
}

/** Keys whose value is undefined count as absent. */
export function changeOf(earlier: JsonObject, object: JsonObject): ObjectChange {
  const set = Object.entries(object).filter(([key, value]) => value !== undefined && !isSame(own(earlier, key), value))
  const gone = Object.keys(earlier).filter(key => earlier[key] !== undefined && own(object, key) === undefined)
  return { set: Object.fromEntries(set), ...(gone.length > 0 && { gone }) }
}

/** Not what every object inherits under that name, `constructor` for one. */
const own = (object: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined

/** The object that `change` tells; unchanged values are those of `earlier`, the very same ones. */
export function withChange(earlier: JsonObject, { set, gone }: ObjectChange): JsonObject {
  if (gone === undefined) return Object.keys(set).length === 0 ? earlier : { ...earlier, ...set }
  return { ...Object.fromEntries(Object.entries(earlier).filter(([key]) => !gone.includes(key))), ...set }
}

/** Equal as JSON values, whatever the order of keys. */
export function isSame(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((part, index) => isSame(part, b[index]))
  }
  if (Array.isArray(b)) return false
  // Neither is an array; TypeScript does not narrow a readonly array out of the union.
  const [one, other] = [a as JsonObject, b as JsonObject]
  const keys = Object.keys(one)
  return (
    keys.length === Object.keys(other).length &&
    keys.every(key => Object.hasOwn(other, key) && isSame(one[key], other[key]))
  )
}
