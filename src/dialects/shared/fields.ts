// Reading fields of a request body: each reader returns the typed value or refuses with the field's path, what was wanted and what was got.
// `null` counts as absent everywhere, as the APIs' own servers do (cases chat-wire-5, responses-request-14). Values are never quoted in
// messages beyond a short type name or a short literal: bodies hold prompts.

import { RolloutError } from '../../domain/errors.js'
import { isObject, type JsonObject } from '../../domain/json.js'

/** Refuses the request: DIALECT_INVALID_REQUEST with `path: wanted ..., got ...`. */
export function refuse(path: string, wanted: string, got: unknown): never {
  throw new RolloutError('DIALECT_INVALID_REQUEST', `${path}: wanted ${wanted}, got ${describe(got)}`, {
    details: { path },
  })
}

/** Refuses something that is well formed but cannot be served: `path: reason`. */
export function refuseUnsupported(path: string, reason: string): never {
  throw new RolloutError('DIALECT_INVALID_REQUEST', `${path}: ${reason}`, { details: { path } })
}

/** Joins a path and a key: `at('a', 'b')` is `a.b`, `at('', 'b')` is `b`, `at('a', 0)` is `a[0]`. */
export const at = (path: string, key: string | number): string =>
  typeof key === 'number' ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`

/** A field that may be absent; `wanted` names the type in the refusal. */
function optional<T>(
  owner: JsonObject,
  key: string,
  path: string,
  wanted: string,
  check: (value: unknown) => value is T,
) {
  const value: unknown = owner[key]
  if (value === undefined || value === null) return undefined
  return check(value) ? value : refuse(at(path, key), wanted, value)
}

const isString = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const isInteger = (value: unknown): value is number => Number.isSafeInteger(value)
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean'
const isArray = (value: unknown): value is readonly unknown[] => Array.isArray(value)
/** A parsed JSON object is a JsonObject: the values come from JSON.parse. */
const isJsonObject = (value: unknown): value is JsonObject => isObject(value)

export const stringField = (owner: JsonObject, key: string, path = '') =>
  optional(owner, key, path, 'a string', isString)
export const numberField = (owner: JsonObject, key: string, path = '') =>
  optional(owner, key, path, 'a number', isNumber)
export const integerField = (owner: JsonObject, key: string, path = '') =>
  optional(owner, key, path, 'an integer', isInteger)
export const booleanField = (owner: JsonObject, key: string, path = '') =>
  optional(owner, key, path, 'true or false', isBoolean)
export const arrayField = (owner: JsonObject, key: string, path = '') => optional(owner, key, path, 'an array', isArray)
export const objectField = (owner: JsonObject, key: string, path = '') =>
  optional(owner, key, path, 'an object', isJsonObject)

/** The value as an object, or a refusal. */
export const asObject = (value: unknown, path: string): JsonObject =>
  isJsonObject(value) ? value : refuse(path, 'an object', value)

/** A string that must be there and not be empty. */
export function requiredString(owner: JsonObject, key: string, path = ''): string {
  const value: unknown = owner[key]
  return isString(value) && value !== '' ? value : refuse(at(path, key), 'a non-empty string', value)
}

/** An array that must be there with at least one element. */
export function requiredArray(owner: JsonObject, key: string, path = ''): readonly unknown[] {
  const value: unknown = owner[key]
  return isArray(value) && value.length > 0 ? value : refuse(at(path, key), 'a non-empty array', value)
}

/** A list of strings; one string counts as a list of one (`stop`). */
export function stringList(owner: JsonObject, key: string, path = ''): readonly string[] | undefined {
  const value: unknown = owner[key]
  if (value === undefined || value === null) return undefined
  if (isString(value)) return [value]
  if (!isArray(value)) return refuse(at(path, key), 'a string or an array of strings', value)
  return value.map((item, index) => (isString(item) ? item : refuse(at(at(path, key), index), 'a string', item)))
}

/** The text, or '' for what is none. Unlike String(), which calls whatever a body's own `toString` is. */
export const wordOf = (value: unknown): string => (isString(value) ? value : '')

/** `one of "a", "b"`, for refusals. */
export const oneOf = (values: readonly string[]): string => `one of ${values.map(value => `"${value}"`).join(', ')}`

/** Short description of a value: literals up to 60 characters, else the type. */
function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array'
  if (typeof value === 'string')
    return value.length <= 60 ? JSON.stringify(value) : `a string of ${value.length} characters`
  if (typeof value === 'object') return 'an object'
  return String(value)
}
