// A gateway pair in one thread over the real kernel: proxy and merge actors, a real capture link between them, real HTTP. The
// session actor is a probe.

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { MessageChannel } from 'node:worker_threads'
import { inferenceProps } from '../../actors/inference/actor.js'
import { mergeProps } from '../../actors/merge/actor.js'
import { type Journal, memoryJournal } from '../../actors/merge/journal.js'
import { captureLinks } from '../../actors/merge/links.js'
import type { InferenceMessage, InferenceReply } from '../../actors/protocol/inference.js'
import type { MergeMessage } from '../../actors/protocol/merge.js'
import type { ProberMessage } from '../../actors/protocol/prober.js'
import type { ProxyMessage, ProxySession } from '../../actors/protocol/proxy.js'
import type { SessionMessage } from '../../actors/protocol/session.js'
import { proxyProps } from '../../actors/proxy/actor.js'
import type { Obstacles } from '../../actors/proxy/effects.js'
import type { ActorClock } from '../../actors/system/behavior.js'
import { realClock } from '../../actors/system/clock.js'
import type { Probe } from '../../actors/system/probe.js'
import type { ActorRef } from '../../actors/system/ref.js'
import { captureSender } from '../../actors/threads/port-link.js'
import type { LimitsPlan, Plan, UpstreamPlan } from '../../src/config/plan.js'
import type { CapturedCall, FailedCall } from '../../src/domain/completion.js'
import type { SessionId } from '../../src/domain/ids.js'
import { type InferenceRecord, NO_PAUSE } from '../../src/domain/inference.js'
import type { JsonObject } from '../../src/domain/json.js'
import type { TaskLimits } from '../../src/domain/task.js'
import { wholeRecord } from '../../src/ledger/view.js'
import { createRealTimeSystem, type RecordingLogger } from './test-system.js'

const limits: LimitsPlan = {
  queuedSessions: 100,
  samplesPerTask: 100,
  inflightPerSession: 8,
  admissionTimeoutMs: 10_000,
  creditRecords: 64,
  creditBytes: 32 * 1024 * 1024,
  sessionCredit: 8,
  bodyBytes: 64 * 1024 * 1024,
  mailbox: 1024,
  drainMs: 1000,
  eventQueue: 100,
  outputBytes: 1000,
  sessionBytes: 1000,
}

export const noLimits: TaskLimits = {
  max_turns: null,
  max_input_tokens: null,
  max_output_tokens: null,
  max_total_tokens: null,
  context_window: null,
}

/** The parts of a plan that a pair reads. */
export function gatewayPlan(
  upstreams: readonly (Partial<UpstreamPlan> & { readonly urls: readonly string[] })[],
  changes: { readonly limits?: Partial<LimitsPlan>; readonly models?: Plan['models'] } = {},
): Plan {
  const plans = upstreams.map((upstream, index) => ({
    id: `up-${index}`,
    profile: 'vllm',
    modelServed: 'served',
    concurrency: 8,
    history: 'messages' as const,
    tokenizer: null,
    sampling: {},
    contextWindow: null,
    probe: 'off' as const,
    ...upstream,
  }))
  return {
    nodeId: 'node-1',
    control: { host: '127.0.0.1', port: 0, publicUrl: null },
    gateway: { host: '127.0.0.1', port: 0, publicUrl: null, proxies: 1 },
    upstreams: plans,
    models: changes.models ?? { default: { upstream: plans[0]?.id ?? '', adapter: null, trainable: true } },
    stages: { init: 1, ready: 1, running: 1, postrun: 1 },
    limits: { ...limits, ...changes.limits },
    budgets: { buildMs: 1, evaluateMs: 1, teardownMs: 1, callbackAttemptMs: 1, callbackExpiryMs: 1 },
    defaultRuntime: null,
    saveDir: null,
    stateDir: '/nonexistent',
    cacheDir: '/nonexistent',
    security: { token: null, openRoutes: [], callbackHosts: [], sourceRoots: [] },
    hostEnvironment: {},
    compat: { unknownKeys: 'refuse' },
    retention: { artifactsMs: 1, resultsMs: 1, results: 1 },
    simulation: null,
  }
}

export interface PairSession {
  readonly sessionId: SessionId
  readonly key: string
  readonly probe: Probe<SessionMessage>
}

export interface PairLedger {
  readonly sessionId: SessionId
  readonly calls: readonly CapturedCall[]
  readonly failed: readonly FailedCall[]
}

export interface Pair {
  readonly url: string
  readonly proxy: ActorRef<ProxyMessage>
  readonly merge: ActorRef<MergeMessage>
  readonly prober: Probe<ProberMessage>
  readonly log: RecordingLogger
  readonly deadLetters: readonly unknown[]
  /** Opens a ledger and registers the session, running unless said otherwise. */
  session(name: string, changes?: Partial<ProxySession>): Promise<PairSession>
  put(session: PairSession, changes: Partial<ProxySession>): Promise<void>
  /** Ends the session's calls. */
  closeSession(session: PairSession): Promise<{ readonly calls: number; readonly aborted: number }>
  /** Ends the session's calls and takes its ledger, with whole records. */
  ledger(session: PairSession): Promise<PairLedger>
  inflight(): Promise<{ readonly inflight: number; readonly unacknowledged: number }>
  /** Through the inference actor, as main does it; owner `trainer`, mode `wait`, a lease and a time-out of a minute. */
  pause(changes?: Partial<Question<'pause-requested'>>): Promise<InferenceReply>
  resume(changes?: Partial<Question<'resume-requested'>>): Promise<InferenceReply>
  inference(): Promise<InferenceReply>
  post(path: string, body: unknown, options?: PostOptions): Promise<Response>
}

type Question<T extends InferenceMessage['type']> = Omit<
  Extract<InferenceMessage, { readonly type: T }>,
  'type' | 'replyTo'
>

export interface PostOptions {
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

const ASK_MS = 20_000

export async function startPair(
  t: { teardown(run: () => unknown): unknown },
  plan: Plan,
  clock: ActorClock = realClock(),
  obstacles: Obstacles = {},
  journal: Journal = memoryJournal(),
): Promise<Pair> {
  const { system, log, deadLetters, probe } = createRealTimeSystem(t, clock, 'pair')
  let record: InferenceRecord = NO_PAUSE
  const { port1, port2 } = new MessageChannel()
  const links = captureLinks(log)
  links.add(port2)
  const sender = captureSender(port1, plan.limits)
  const merge = system.spawn(mergeProps({ links, journal, onIntake: () => {}, mailbox: plan.limits.mailbox }), 'merge')
  const prober = probe<ProberMessage>('prober')
  const proxy = system.spawn(proxyProps({ plan, port: 0, sender, obstacles, prober: prober.ref }), 'proxy')
  const memory = {
    read: () => record,
    write: (next: InferenceRecord) => {
      record = next
    },
  }
  const inference = system.spawn(inferenceProps({ proxies: [proxy], memory }, plan.limits.mailbox), 'inference')
  t.teardown(async () => {
    await system.stop(10_000)
    sender.close()
    links.close()
  })
  const { port } = await system.ask(proxy, { type: 'proxy-described' }, ASK_MS)
  const url = `http://127.0.0.1:${port}`

  const put = async ({ sessionId, key, probe: { ref } }: PairSession, changes: Partial<ProxySession>) => {
    const session: ProxySession = {
      sessionId,
      keyHash: createHash('sha256').update(key).digest('hex'),
      attempt: 0,
      state: 'running',
      sampling: {},
      samplingSeed: null,
      limits: noLimits,
      models: {},
      sideCalls: [],
      session: ref,
      firstSequence: 0,
      used: { turns: 0, promptTokens: 0, sampledTokens: 0 },
      ...changes,
    }
    await system.ask(proxy, { type: 'session-put', session }, ASK_MS)
  }
  const closeSession = (session: PairSession) =>
    system.ask(proxy, { type: 'session-close-requested', sessionId: session.sessionId }, ASK_MS)
  return {
    url,
    proxy,
    merge,
    prober,
    log,
    deadLetters,
    put,
    closeSession,
    async session(name, changes = {}) {
      const session = {
        sessionId: name as SessionId,
        key: `sk-of-${name}`,
        probe: probe<SessionMessage>(`session-${name}`),
      }
      merge.tell({ type: 'open-ledger', sessionId: session.sessionId, session: session.probe.ref })
      await put(session, changes)
      return session
    },
    async ledger(session) {
      await closeSession(session)
      const reply = await system.ask(
        merge,
        { type: 'ledger-seal-requested', sessionId: session.sessionId, atMs: clock.now() },
        ASK_MS,
      )
      if (reply.type !== 'ledger-sealed') throw new Error('no ledger')
      const { sessionId, calls, failed } = reply.ledger
      const whole = calls.map(call => ({ record: wholeRecord(reply.ledger, call), delivered: call.delivered }))
      return { sessionId, calls: whole, failed }
    },
    inflight: () => system.ask(proxy, { type: 'proxy-described' }, ASK_MS),
    pause: (changes = {}) =>
      system.ask(
        inference,
        {
          type: 'pause-requested',
          owner: 'trainer',
          mode: 'wait',
          leaseMs: 60_000,
          timeoutMs: 60_000,
          atMs: clock.now(),
          ...changes,
        },
        ASK_MS,
      ),
    resume: (changes = {}) =>
      system.ask(
        inference,
        { type: 'resume-requested', owner: 'trainer', force: false, policyVersion: null, ...changes },
        ASK_MS,
      ),
    inference: () => system.ask(inference, { type: 'inference-described' }, ASK_MS),
    post: (path, body, { key, headers = {}, signal } = {}) =>
      fetch(url + path, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(key !== undefined && { authorization: `Bearer ${key}` }),
          ...headers,
        },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal && { signal }),
      }),
  }
}

/** The smallest generation of each dialect, and where its text is in a whole answer. */
export const dialectCalls = {
  openai_chat: {
    path: '/v1/chat/completions',
    body: { model: 'm', messages: [{ role: 'user', content: 'hi' }] } as JsonObject,
    streamPath: '/v1/chat/completions',
    streamBody: { stream: true } as JsonObject,
    text: (body: unknown) => dig(body, 'choices', 0, 'message', 'content'),
  },
  openai_responses: {
    path: '/v1/responses',
    body: { model: 'm', input: [{ role: 'user', content: 'hi' }] } as JsonObject,
    streamPath: '/v1/responses',
    streamBody: { stream: true } as JsonObject,
    text: (body: unknown) => dig(body, 'output', 0, 'content', 0, 'text'),
  },
  anthropic_messages: {
    path: '/v1/messages',
    body: { model: 'm', max_tokens: 64, messages: [{ role: 'user', content: 'hi' }] } as JsonObject,
    streamPath: '/v1/messages',
    streamBody: { stream: true } as JsonObject,
    text: (body: unknown) => dig(body, 'content', 0, 'text'),
  },
  google_generate: {
    path: '/v1beta/models/m:generateContent',
    body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] } as JsonObject,
    streamPath: '/v1beta/models/m:streamGenerateContent?alt=sse',
    streamBody: {} as JsonObject,
    text: (body: unknown) => dig(body, 'candidates', 0, 'content', 'parts', 0, 'text'),
  },
} as const

function dig(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((part, key) => (part as Record<string | number, unknown> | undefined)?.[key], value)
}

/** Reads a stream piece by piece. */
export function readerOf(response: Response): { until(text: string): Promise<string>; rest(): Promise<string> } {
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  let seen = ''
  const more = async (): Promise<boolean> => {
    const next = await reader?.read()
    if (!next || next.done) return false
    seen += decoder.decode(next.value, { stream: true })
    return true
  }
  return {
    /** All text so far, once it contains `text`. */
    async until(text) {
      while (!seen.includes(text)) if (!(await more())) throw new Error(`the stream ended without ${text}: ${seen}`)
      return seen
    },
    async rest() {
      while (await more());
      return seen
    },
  }
}

/** One turn of the event loop after all I/O that is ready: used to show that something does NOT happen. */
export async function quiet(): Promise<void> {
  const { port1, port2 } = new MessageChannel()
  for (let round = 0; round < 20; round += 1) {
    port1.postMessage(0)
    await once(port2, 'message')
    await new Promise(resolve => setImmediate(resolve))
  }
  port1.close()
}
