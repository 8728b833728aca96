// The fields of the four APIs, generated from the request types of the pinned official SDKs by the TypeScript compiler. A field is a path
// and a smallest body that sends it: `messages[user].content[image_url].image_url.detail`. Square brackets are list elements, braces
// alternatives of an object; the name inside is the alternative's own `type` or `role`. Bounded: MAX_NAMES properties deep, no type inside
// itself, nothing below free JSON (schemas, arguments, metadata).

import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import type { DialectId } from '../src/domain/conversation.js'
import { isObject, type Json, type JsonObject } from '../src/domain/json.js'
import { ALONE, FRAMES, type Frame, NEEDED, VALUES } from './dialect-samples.js'

export interface Field {
  readonly path: string
  /** Smallest body with the field. */
  readonly body: JsonObject
  /** The same body without it, or, where it cannot be left out, with another value; null where there is only one. */
  readonly other: JsonObject | null
}

/** A module that names the request type of each API. Google's takes content in many forms, of which its SDK sends one. */
const ROOTS = `
import type { MessageCreateParamsBase } from '@anthropic-ai/sdk/resources/beta/messages/messages'
import type { ChatCompletionCreateParamsBase } from 'openai/resources/chat/completions/completions'
import type { ResponseCreateParamsBase } from 'openai/resources/responses/responses'
import type { Content, GenerateContentConfig, Tool } from '@google/genai'
export type anthropic_messages = MessageCreateParamsBase
export type openai_chat = ChatCompletionCreateParamsBase
export type openai_responses = ResponseCreateParamsBase
export type google_generate = {
  model: string
  contents: Content[]
  config?: Omit<GenerateContentConfig, 'systemInstruction' | 'tools'> & { systemInstruction?: Content; tools?: Tool[] }
}
`

/** Properties from the root to a field. */
const MAX_NAMES = 4
const SAMPLE_DEPTH = 6

export function sdkFields(): Readonly<Record<DialectId, readonly Field[]>> {
  const file = fileURLToPath(new URL('../../sdk-fields-roots.ts', import.meta.url))
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    strict: true,
    skipLibCheck: true,
    types: [],
  }
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists } = host
  host.getSourceFile = (name, ...rest) =>
    name === file
      ? ts.createSourceFile(name, ROOTS, ts.ScriptTarget.ES2022, true)
      : getSourceFile.call(host, name, ...rest)
  host.fileExists = name => name === file || fileExists.call(host, name)
  const program = ts.createProgram([file], options, host)
  const checker = program.getTypeChecker()
  const root = program.getSourceFile(file)
  if (root === undefined) throw new Error('no root file')
  const walker = new Walker(checker, root)
  const fields = new Map<string, readonly Field[]>()
  root.forEachChild(node => {
    if (!ts.isTypeAliasDeclaration(node)) return
    const { text } = node.name
    // The aliases of ROOTS are named as the dialects.
    fields.set(text, walker.fieldsOf(checker.getTypeAtLocation(node), text as DialectId))
  })
  return Object.fromEntries(fields) as Readonly<Record<DialectId, readonly Field[]>>
}

/** Puts a value into a copy of the body around a field; `undefined` leaves the field out. */
type Wrap = (value: Json | undefined) => JsonObject

interface Alternative {
  readonly name: string
  readonly type: ts.Type
}

/** The value, unless it is an empty object. */
const speaking = (value: Json | undefined): Json | undefined =>
  isObject(value) && Object.keys(value).length === 0 ? undefined : value

/** The body with its last turn the model's. */
function asModel(body: JsonObject): JsonObject {
  const contents = (body['contents'] ?? []) as readonly JsonObject[]
  return { ...body, contents: [...contents.slice(0, -1), { ...contents.at(-1), role: 'model' }] }
}

class Walker {
  readonly #checker: ts.TypeChecker
  readonly #node: ts.Node
  readonly #fields = new Map<string, Field>()
  #base: JsonObject = {}
  #turns: Frame['turns'] = { name: '', before: [], after: [] }
  #isOfModel: Frame['isOfModel']
  #values: Readonly<Record<string, Json>> = {}

  constructor(checker: ts.TypeChecker, node: ts.Node) {
    this.#checker = checker
    this.#node = node
  }

  fieldsOf(root: ts.Type, id: DialectId): readonly Field[] {
    const { base, turns } = FRAMES[id]
    this.#fields.clear()
    this.#base = base
    this.#turns = turns
    this.#isOfModel = FRAMES[id].isOfModel
    this.#values = VALUES[id]
    // The smallest value of an object type is an object.
    const smallest = this.#sample(root, 0) as JsonObject
    this.#properties(root, '', value => value as JsonObject, { ...smallest, ...base }, [root], 1)
    return [...this.#fields.values()]
  }

  /** The properties of `owner`, whose smallest value is `base`, placed by `wrap`. */
  #properties(
    owner: ts.Type,
    path: string,
    wrap: Wrap,
    base: JsonObject,
    above: readonly ts.Type[],
    names: number,
  ): void {
    for (const property of this.#checker.getPropertiesOfType(owner)) {
      const type = this.#typeOf(property)
      if (this.#isFunction(type) || this.#isOneLiteral(type)) continue
      const own = path === '' ? property.name : `${path}.${property.name}`
      const { [property.name]: _, ...others } = base
      const { text: __, ...alone } = others
      const without = ALONE.has(property.name) ? alone : others
      const place: Wrap = value => wrap(value === undefined ? others : { ...without, [property.name]: value })
      const isOptional = (property.flags & ts.SymbolFlags.Optional) !== 0
      const value = this.#values[own] ?? speaking(base[property.name]) ?? this.#filled(type)
      const changed = isOptional ? undefined : this.#changed(type, value)
      this.#add(own, place(value), isOptional || changed !== undefined ? place(changed) : null)
      if (names < MAX_NAMES) this.#inside(type, own, place, above, names)
    }
  }

  /** What stands in the value of a field: the properties of an object, the alternatives of a union, the elements of a list. */
  #inside(type: ts.Type, path: string, place: Wrap, above: readonly ts.Type[], names: number): void {
    const members = this.#members(type)
    const lists = members.filter(member => this.#checker.isArrayType(member))
    const objects = members.filter(member => this.#isRecord(member))
    for (const list of lists) {
      const [element] = this.#checker.getTypeArguments(list as ts.TypeReference)
      const elements = element === undefined ? [] : this.#members(element).filter(member => this.#isRecord(member))
      this.#alternatives(elements, path, ['[', ']'], value => place(this.#listOf(value, path)), above, names)
    }
    this.#alternatives(objects, path, ['{', '}'], place, above, names)
  }

  #alternatives(
    types: readonly ts.Type[],
    path: string,
    [open, close]: readonly [string, string],
    place: Wrap,
    above: readonly ts.Type[],
    names: number,
  ): void {
    for (const { name, type } of this.#named(types)) {
      if (above.includes(type)) continue
      const isOnly = types.length === 1
      const own = isOnly ? (open === '[' ? `${path}[]` : path) : `${path}${open}${name}${close}`
      // What other fields of the object need, where it stands at the top.
      const framed = open === '{' ? this.#base[path] : undefined
      const base = { ...(this.#sample(type, 0) as JsonObject), ...(isObject(framed) && (framed as JsonObject)) }
      if (!isOnly) this.#add(own, place(base), place(undefined))
      this.#properties(type, own, value => place(value), base, [...above, type], names + 1)
    }
  }

  /** One element; an element of the list of turns stands among others. */
  #listOf(value: Json | undefined, path: string): readonly Json[] {
    const { name, before, after } = this.#turns
    const own = value === undefined ? [] : [value]
    return path === name ? [...before, ...own, ...after] : own
  }

  /** Another value of a field that cannot be left out; undefined where it has but one. */
  #changed(type: ts.Type, value: Json): Json | undefined {
    const literals = this.#members(type).flatMap(member => (member.isStringLiteral() ? [member.value] : []))
    if (literals.length > 0) return literals.find(literal => literal !== value)
    if (typeof value === 'string') return `${value}y`
    if (typeof value === 'number') return value + 1
    return typeof value === 'boolean' ? !value : undefined
  }

  #add(path: string, body: JsonObject, other: JsonObject | null): void {
    if (this.#fields.has(path)) return
    const turned = this.#isOfModel?.(path) ? asModel : (same: JsonObject) => same
    this.#fields.set(path, { path, body: turned(body), other: other && turned(other) })
  }

  /** Alternatives by the literals of their `type`, `role` or `kind`, else by the name of the type. */
  #named(types: readonly ts.Type[]): readonly Alternative[] {
    const taken = new Map<string, number>()
    return types.map(type => {
      const name = this.#nameOf(type)
      const seen = taken.get(name) ?? 0
      taken.set(name, seen + 1)
      return { name: seen === 0 ? name : `${name} ${type.symbol?.name ?? seen}`, type }
    })
  }

  /** A smallest value that says something: of an object without required fields, the first field. */
  #filled(type: ts.Type, depth = 0): Json {
    const value = this.#sample(type, depth)
    const [first] = this.#members(type)
    if (first === undefined || depth > 2) return value
    if (Array.isArray(value) && this.#checker.isArrayType(first)) {
      const [element] = this.#checker.getTypeArguments(first as ts.TypeReference)
      return element === undefined ? value : [this.#filled(element, depth + 1)]
    }
    if (!this.#isRecord(first) || Object.keys(value as JsonObject).length > 0) return value
    const property = this.#checker
      .getPropertiesOfType(first)
      .find(({ name }) => !this.#isFunction(this.#typeOf(first.getProperty(name) as ts.Symbol)))
    return property === undefined ? value : { [property.name]: this.#filled(this.#typeOf(property), depth + 1) }
  }

  #nameOf(type: ts.Type): string {
    for (const name of ['type', 'role']) {
      const property = type.getProperty(name)
      const literal = property && this.#literal(this.#typeOf(property))
      if (literal !== undefined) return literal
    }
    return type.aliasSymbol?.name ?? type.symbol?.name ?? 'object'
  }

  /** A smallest value: required properties only, the first alternative, the first literal. */
  #sample(type: ts.Type, depth: number): Json {
    const [first] = this.#members(type)
    // Free JSON.
    if (first === undefined) return { x: 'x' }
    if (depth > SAMPLE_DEPTH) return 'x'
    if (first.isStringLiteral() || first.isNumberLiteral()) return first.value
    if (first.flags & ts.TypeFlags.BooleanLike) return true
    if (first.flags & ts.TypeFlags.NumberLike) return 1
    if (first.flags & ts.TypeFlags.StringLike) return 'x'
    if (this.#checker.isArrayType(first)) {
      const [element] = this.#checker.getTypeArguments(first as ts.TypeReference)
      return element === undefined ? [] : [this.#sample(element, depth + 1)]
    }
    const required = this.#checker
      .getPropertiesOfType(first)
      .filter(property => (property.flags & ts.SymbolFlags.Optional) === 0)
    const index = first.getStringIndexType()
    if (this.#isRecord(first)) {
      const own = required
        .filter(property => !this.#isFunction(this.#typeOf(property)))
        .map(property => [property.name, this.#sample(this.#typeOf(property), depth + 1)])
      return { ...Object.fromEntries(own), ...NEEDED[this.#nameOf(first)] }
    }
    return first.flags & ts.TypeFlags.Object ? { x: index === undefined ? 'x' : this.#sample(index, depth + 1) } : 'x'
  }

  /** Alternatives of a union without null and undefined. `any` and `unknown` have none. */
  #members(type: ts.Type): readonly ts.Type[] {
    const all = type.isUnion() ? type.types : [type]
    const none =
      ts.TypeFlags.Null | ts.TypeFlags.Undefined | ts.TypeFlags.Any | ts.TypeFlags.Unknown | ts.TypeFlags.Void
    return all.filter(member => (member.flags & none) === 0)
  }

  /** An object with named fields: no list, function, free JSON or class of the platform. */
  #isRecord(type: ts.Type): boolean {
    const isObject = (part: ts.Type) => (part.flags & ts.TypeFlags.Object) !== 0
    if (
      !(type.isIntersection() ? type.types.every(isObject) : isObject(type)) ||
      this.#checker.isArrayType(type) ||
      this.#isFunction(type)
    )
      return false
    if (type.getStringIndexType() !== undefined && this.#checker.getPropertiesOfType(type).length === 0) return false
    const file = type.symbol?.declarations?.[0]?.getSourceFile().fileName ?? ''
    return !/typescript\/lib|@types\/node/.test(file)
  }

  #isFunction(type: ts.Type): boolean {
    return this.#members(type).some(member => member.getCallSignatures().length > 0)
  }

  #isOneLiteral(type: ts.Type): boolean {
    return this.#literal(type) !== undefined
  }

  #literal(type: ts.Type): string | undefined {
    const [first, ...others] = this.#members(type)
    return others.length === 0 && first?.isStringLiteral() ? first.value : undefined
  }

  #typeOf(property: ts.Symbol): ts.Type {
    return this.#checker.getTypeOfSymbolAtLocation(property, this.#node)
  }
}
