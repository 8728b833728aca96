// What of a body no decoder reads, anywhere in it: each such field becomes a loss, so that nothing a harness says is dropped in silence. A
// shape names the fields that are read, or that can have no effect on the prompt and the sampling (ids, caching, billing). Free JSON
// (schemas, arguments, metadata) is not looked into.

import type { Loss } from '../../domain/conversation.js'
import { isObject, type JsonObject } from '../../domain/json.js'
import { at } from './fields.js'

/** Fields by name, lists being looked through; `free` = read as a whole, or without effect. A function chooses by the object itself. */
export type Shape = 'free' | Fields | ((node: JsonObject) => Shape)

export interface Fields {
  readonly [name: string]: Shape
}

/** `{a: 'free', b: 'free'}` of `'a b'`. */
export const free = (names: string): Fields => Object.fromEntries(names.split(' ').map(name => [name, 'free']))

/**
 * Losses for the fields of `body` that `shape` does not name. Fields without content (null, empty lists and objects) say nothing; what lies
 * under a path in `known` is recorded already. `nameOf` maps a key of the body to its name in the shape.
 */
export function unread(
  body: JsonObject,
  shape: Shape,
  known: readonly Loss[],
  nameOf: (key: string) => string = key => key,
): Loss[] {
  const paths: string[] = []
  // Names and numbers from the body down; a path is written only where there is something to say.
  const place: (string | number)[] = []
  const walk = (value: unknown, wanted: Shape): void => {
    if (wanted === 'free' || typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index += 1) {
        place.push(index)
        walk(value[index], wanted)
        place.pop()
      }
      return
    }
    // What JSON.parse gave is JSON all the way down.
    const node = value as JsonObject
    const fields = typeof wanted === 'function' ? wanted(node) : wanted
    if (typeof fields === 'function') throw new Error('a shape chooses once')
    if (fields === 'free') return
    for (const key of Object.keys(node)) {
      const name = nameOf(key)
      // A harness may say `valueOf`, which every object inherits.
      const inner = Object.hasOwn(fields, name) ? fields[name] : undefined
      if (inner === 'free') continue
      place.push(key)
      if (inner !== undefined) walk(node[key], inner)
      else if (hasContent(node[key])) paths.push(place.reduce<string>(at, ''))
      place.pop()
    }
  }
  walk(body, shape)
  return paths
    .filter(path => !known.some(loss => path.startsWith(loss.path) && /^($|[.[])/.test(path.slice(loss.path.length))))
    .map(path => ({ path, reason: 'not carried to the engine' }))
}

const hasContent = (value: unknown): boolean => {
  if (value === undefined || value === null) return false
  if (Array.isArray(value)) return value.length > 0
  return isObject(value) ? Object.keys(value).length > 0 : true
}
