// A gateway pair in front of a scripted engine, with the official SDKs as its clients: what a test of an SDK starts from.

import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import type { LimitsPlan, Plan, UpstreamPlan } from '../../src/config/plan.js'
import type { JsonObject } from '../../src/domain/json.js'
import { gatewayPlan, type Pair, type PairSession, startPair } from './pair.js'
import { type Script, type ScriptedAnswer, type ScriptedEngine, scriptedEngine } from './scripted-engine.js'

export interface SdkWorld {
  readonly engine: ScriptedEngine
  readonly pair: Pair
  readonly session: PairSession
  /** `key` null: the session's own. SDK retries are off unless asked for. */
  openai(options?: ClientOptions): OpenAI
  anthropic(options?: ClientOptions): Anthropic
  google(options?: ClientOptions): GoogleGenAI
  /** Body of the engine's generation of that number. */
  asked(index: number): JsonObject
}

export interface ClientOptions {
  readonly key?: string
  readonly retries?: number
}

export interface WorldOptions {
  readonly upstream?: Partial<UpstreamPlan>
  readonly limits?: Partial<LimitsPlan>
  readonly models?: Plan['models']
}

interface Teardown {
  teardown(run: () => unknown): unknown
}

export async function sdkWorld(t: Teardown, script: Script, options: WorldOptions = {}): Promise<SdkWorld> {
  const engine = await scriptedEngine(t, script)
  const pair = await startPair(
    t,
    gatewayPlan([{ urls: [engine.url], ...options.upstream }], {
      ...(options.limits && { limits: options.limits }),
      ...(options.models && { models: options.models }),
    }),
  )
  const session = await pair.session('s-sdk')
  return { engine, pair, session, ...sdkClients(pair.url, session.key), asked: index => bodyOf(engine, index) }
}

/** The three SDKs pointed at one gateway with one key. */
export function sdkClients(url: string, sessionKey: string): Pick<SdkWorld, 'openai' | 'anthropic' | 'google'> {
  return {
    openai: ({ key = sessionKey, retries = 0 } = {}) =>
      new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: retries }),
    anthropic: ({ key = sessionKey, retries = 0 } = {}) =>
      new Anthropic({ baseURL: url, apiKey: key, maxRetries: retries }),
    google: ({ key = sessionKey } = {}) => new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } }),
  }
}

function bodyOf(engine: ScriptedEngine, index: number): JsonObject {
  const generation = engine.generations[index]
  if (generation === undefined)
    throw new Error(`the engine had ${engine.generations.length} calls, wanted ${index + 1}`)
  return generation.body
}

/** An engine that first calls the tool `add` twice in one turn, then `add` once more, then answers in words. */
export const addingPolicy: readonly ScriptedAnswer[] = [
  {
    reasoning: 'Two sums.',
    pieces: ['Adding', ' both.'],
    toolCalls: [
      { id: 'call_a', name: 'add', arguments: '{"a": 1, "b": 2}' },
      { id: 'call_b', name: 'add', arguments: '{"a": 3, "b": 4}' },
    ],
  },
  { toolCalls: [{ id: 'call_c', name: 'add', arguments: '{"a": 3, "b": 7}' }] },
  { pieces: ['The sum', ' is 10.'] },
]

export const ADD_PARAMETERS = {
  type: 'object' as const,
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a', 'b'],
}

/** The tool itself. */
export const add = ({ a, b }: { readonly a: number; readonly b: number }): number => a + b
