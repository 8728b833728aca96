// Turns what a zod schema refuses into problems that name the field and what was wanted, for the config file and for the control
// API alike. All problems of an input are reported together; an unknown key is named with the nearest known one.

import { closest, distance } from 'fastest-levenshtein'
import type * as z from 'zod'

export type ProblemPath = readonly (string | number)[]

export interface Problem {
  readonly path: ProblemPath
  /** What was wanted, and what was got. */
  readonly message: string
  /** Stable word for programs: `missing`, `unknown_key`, or zod's own code. */
  readonly type: string
}

/** `a.b[0].c`; the empty path is written `(top level)`. */
export function formatPath(path: ProblemPath): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else if (/^[A-Za-z_$][\w$-]*$/.test(part)) text += text === '' ? part : `.${part}`
    else text += `[${JSON.stringify(part)}]`
  }
  return text === '' ? '(top level)' : text
}

/** Splits `a.b[0].c` (the form in which plugins report paths) into its parts. */
export function parsePath(text: string): ProblemPath {
  const parts: (string | number)[] = []
  for (const match of text.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.[\]]+)/g)) {
    if (match[1] !== undefined) parts.push(match[1])
    else if (match[2] !== undefined) parts.push(Number(match[2]))
    else if (match[3] !== undefined) parts.push(/^\d+$/.test(match[3]) ? Number(match[3]) : match[3])
  }
  return parts
}

/** The nearest of `known` when it is near enough to be meant (half of its letters, or a word of it), else null. */
export function nearestName(name: string, known: readonly string[]): string | null {
  if (known.length === 0) return null
  const squash = (text: string) => text.toLowerCase().replaceAll(/[_-]/g, '')
  const wanted = closest(name, [...known])
  const limit = Math.floor(Math.max(name.length, wanted.length) / 2)
  if (distance(squash(name), squash(wanted)) <= limit) return wanted
  const words = wordsOf(name)
  const sharing = known.filter(other => wordsOf(other).some(word => words.includes(word)))
  return sharing.length === 0 ? null : closest(name, sharing)
}

const wordsOf = (name: string): readonly string[] =>
  name
    .split(/[_-]|(?<=[a-z])(?=[A-Z])/)
    .map(word => word.toLowerCase())
    .filter(word => word.length > 2)

/** Every problem zod found in `input`, in the order of the input's fields. */
export function zodProblems(schema: z.core.$ZodType, error: z.core.$ZodError, input: unknown): readonly Problem[] {
  return error.issues.flatMap(issue => issueProblems(schema, issue, input, []))
}

type Issue = z.core.$ZodIssue

function issueProblems(schema: z.core.$ZodType, issue: Issue, input: unknown, base: ProblemPath): readonly Problem[] {
  const path = [...base, ...issue.path.map(part => (typeof part === 'number' ? part : String(part)))]
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeysAt(schema, input, path)
    return issue.keys.map(key => ({
      path: [...path, key],
      message: unknownKeyMessage(key, known),
      type: 'unknown_key',
    }))
  }
  // A secret that stands where a reference should is not printed.
  const got =
    SECRET.test(String(path.at(-1))) && typeof valueAt(input, path) === 'string' ? HIDDEN : valueAt(input, path)
  if (issue.code === 'invalid_union') {
    if (issue.errors.length > 0) return unionProblems(schema, issue.errors, input, path, got)
    const options = 'options' in issue && Array.isArray(issue.options) ? issue.options : []
    return [
      { path, message: `wanted one of ${list(options.map(String))}, got ${describe(got)}`, type: code(issue, got) },
    ]
  }
  return [{ path, message: messageOf(issue, got), type: code(issue, got) }]
}

/** Of a union's branches, the one that went deepest before it failed is what the author meant. */
function unionProblems(
  schema: z.core.$ZodType,
  branches: readonly (readonly Issue[])[],
  input: unknown,
  path: ProblemPath,
  got: unknown,
): readonly Problem[] {
  const shallow = (issues: readonly Issue[]) =>
    issues.some(issue => issue.path.length === 0 && issue.code === 'invalid_type')
  const deep = branches.find(issues => !shallow(issues))
  if (deep) return deep.flatMap(issue => issueProblems(schema, issue, input, path))
  const wanted = branches.flatMap(issues => issues.map(issue => ('expected' in issue ? String(issue.expected) : '')))
  const names = [...new Set(wanted.filter(Boolean).map(typeName))]
  return [{ path, message: `wanted ${names.join(' or ')}, got ${describe(got)}`, type: 'invalid_type' }]
}

const code = (issue: Issue, got: unknown): string =>
  got === undefined && issue.code !== 'custom' ? 'missing' : issue.code

function messageOf(issue: Issue, got: unknown): string {
  switch (issue.code) {
    case 'invalid_type':
      return got === undefined
        ? `required: ${typeName(issue.expected)}`
        : `wanted ${typeName(issue.expected)}, got ${describe(got)}`
    case 'invalid_value':
      return `wanted ${issue.values.length === 1 ? '' : 'one of '}${list(issue.values.map(value => JSON.stringify(value)))}, got ${describe(got)}`
    case 'too_small':
      return issue.origin === 'string'
        ? 'must not be empty'
        : `wanted ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${unit(issue.origin)}, got ${describe(got)}`
    case 'too_big':
      return `wanted ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}${unit(issue.origin)}, got ${describe(got)}`
    case 'invalid_key':
      return issue.issues[0]?.message ?? issue.message
    default:
      return issue.message
  }
}

const unit = (origin: string): string => (origin === 'array' ? ' entries' : origin === 'string' ? ' characters' : '')

function unknownKeyMessage(key: string, known: readonly string[]): string {
  const nearest = nearestName(key, known)
  if (nearest !== null) return `unknown key; did you mean "${nearest}"?`
  return known.length === 0 ? 'unknown key; none is known here' : `unknown key; known here: ${known.join(', ')}`
}

const list = (names: readonly string[]): string => names.join(', ')

const NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'a list',
  null: 'null',
}
const typeName = (expected: string): string => NAMES[expected] ?? expected

const SECRET = /^(apiKey|token|callbackToken)$/
const HIDDEN = '********'

/** A value as it may be shown: short, and never a long text. */
function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}

function valueAt(input: unknown, path: ProblemPath): unknown {
  let value = input
  for (const part of path) {
    if (typeof value !== 'object' || value === null) return undefined
    value = (value as Record<string | number, unknown>)[part]
  }
  return value
}

interface AnyDef {
  readonly type: string
  readonly shape?: Readonly<Record<string, z.core.$ZodType>>
  readonly element?: z.core.$ZodType
  readonly valueType?: z.core.$ZodType
  readonly innerType?: z.core.$ZodType
  readonly in?: z.core.$ZodType
  readonly options?: readonly z.core.$ZodType[]
  readonly discriminator?: string
}

/** zod's own definition object, of which only the listed parts are read. */
const defOf = (schema: z.core.$ZodType): AnyDef => schema._zod.def as unknown as AnyDef

function knownKeysAt(schema: z.core.$ZodType, input: unknown, path: ProblemPath): readonly string[] {
  let current: z.core.$ZodType | undefined = schema
  let value = input
  for (const part of path) {
    const def: AnyDef | null = current ? settled(current, value) : null
    if (!def) return []
    current = def.shape ? def.shape[String(part)] : (def.element ?? def.valueType)
    value = valueAt(value, [part])
  }
  const def = current ? settled(current, value) : null
  return def?.shape ? Object.keys(def.shape) : []
}

/** Takes off wrappers (optional, default ...) and picks the branch of a union that fits `value`. */
function settled(schema: z.core.$ZodType, value: unknown): AnyDef | null {
  const def = defOf(schema)
  const inner = def.innerType ?? def.in
  if (inner) return settled(inner, value)
  if (def.type !== 'union' || !def.options) return def
  const objects = def.options.map(option => settled(option, value)).filter(option => option?.shape !== undefined)
  const key = def.discriminator
  const fits = (option: AnyDef | null) =>
    key !== undefined && option?.shape?.[key]?._zod.values?.has(valueAt(value, [key]) as string)
  return objects.find(fits) ?? objects[0] ?? null
}
