// Google's JSON takes field names in camel case and in snake case alike (`systemInstruction`, `system_instruction`).

import type { Json, JsonObject } from '../../domain/json.js'
import { at, refuse } from '../shared/fields.js'

/** The field under its camel-case name or its snake-case one. */
export const pick = (owner: JsonObject, name: string): Json | undefined => owner[name] ?? owner[snakeCase(name)]

/** A list that may be absent or a single object (empty list, list of one). */
export function listField(owner: JsonObject, name: string, path: string): readonly unknown[] {
  const value = pick(owner, name)
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value
  return typeof value === 'object' ? [value] : refuse(at(path, name), 'an array', value)
}

export const camelCase = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

export const snakeCase = (name: string): string => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

/** The object with its snake-case keys in camel case, one level deep. */
export const camelKeys = (owner: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(owner).map(([key, value]) => [camelCase(key), value]))
