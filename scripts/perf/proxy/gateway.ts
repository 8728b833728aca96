// Process of the benchmark: a real gateway pair, on threads; or inline, where one heap holds all and can be collected before it is
// measured. Sessions are opened and closed on command of the parent; each command is answered once.

import { createHash } from 'node:crypto'
import { defer, EMPTY } from 'rxjs'
import { createSystem } from '../../../actors/index.js'
import type { MergeMessage } from '../../../actors/protocol/merge.js'
import type { ProxyMessage } from '../../../actors/protocol/proxy.js'
import type { SessionMessage } from '../../../actors/protocol/session.js'
import { pairThreads } from '../../../actors/threads/pair.js'
import { mergeAddress, proxyAddress } from '../../../actors/threads/pair-names.js'
import { planFromText } from '../../../src/config/load.js'
import type { SessionId } from '../../../src/domain/ids.js'

export type GatewayCommand =
  | { readonly do: 'open'; readonly names: readonly string[] }
  /** Ends the sessions and drops their ledgers, as at the end of a rollout. */
  | { readonly do: 'close'; readonly names: readonly string[] }
  | { readonly do: 'figures' }

export interface GatewayFigures {
  /** Of the whole process. */
  readonly rssBytes: number
  /** Processor time of the whole process since its start. */
  readonly cpuMs: number
  /** Heap and buffers of this thread, after a collection where the process may collect. */
  readonly usedBytes: number
  /** Event loop of the proxy's thread since the last figures, milliseconds; null when it was too busy to answer. */
  readonly loop: { readonly p50Ms: number; readonly p99Ms: number; readonly maxMs: number } | null
}

const ASK_MS = 60_000
const [engineUrl = '', mode = 'real'] = process.argv.slice(2)
const upstream = { id: 'engine', profile: 'vllm', urls: [engineUrl], modelServed: 'policy', concurrency: 1024 }
const plan = planFromText(JSON.stringify({ upstreams: [upstream] }), 'the benchmark', {
  path: null,
  profiles: ['vllm'],
})

const system = createSystem({ plan, threads: mode === 'inline' ? 'inline' : 'real', logLevel: 'error' })
const { host, replies } = await system.startThreads('pair-1', pairThreads(plan, 1, 0))
const proxy = system.refOf<ProxyMessage>(proxyAddress(1))
const merge = system.refOf<MergeMessage>(mergeAddress(1))

/** Takes what a session is told, and keeps nothing. */
const sink = system.spawn<SessionMessage, SessionMessage, null, never>(
  {
    behavior: () => ({
      machine: {
        initial: { state: null, effects: [] },
        step: () => ({ state: null, effects: [] }),
        scope: () => 'life',
      },
      interpret: () => () => defer(() => EMPTY),
      onEffectError: () => ({ type: 'limit-reached', limit: '' }),
    }),
    mailbox: { capacity: 100_000, overflow: 'drop-oldest' },
    supervision: { restart: 'temporary', strategy: 'one-for-one', intensity: 0, periodMs: 1_000 },
    shutdownMs: 100,
  },
  'sink',
)

async function open(name: string): Promise<void> {
  const sessionId = name as SessionId
  merge.tell({ type: 'open-ledger', sessionId, session: sink })
  const limits = {
    max_turns: null,
    max_input_tokens: null,
    max_output_tokens: null,
    max_total_tokens: null,
    context_window: null,
  }
  const session = {
    sessionId,
    keyHash: createHash('sha256').update(`sk-${name}`).digest('hex'),
    attempt: 0,
    state: 'running' as const,
    sampling: {},
    samplingSeed: 1,
    limits,
    models: {},
    sideCalls: [],
    session: sink,
    firstSequence: 0,
    used: { turns: 0, promptTokens: 0, sampledTokens: 0 },
  }
  await system.ask(proxy, { type: 'session-put', session }, ASK_MS)
}

async function close(name: string): Promise<void> {
  const sessionId = name as SessionId
  await system.ask(proxy, { type: 'session-close-requested', sessionId }, ASK_MS)
  // What a rollout does with a sealed ledger is the build's business: here the records are let go.
  merge.tell({ type: 'drop-ledger', sessionId })
  proxy.tell({ type: 'forget-session', sessionId })
}

async function figures(): Promise<GatewayFigures> {
  const { threads } = await system.ask(host, { type: 'threads-described' }, ASK_MS)
  // Only with --expose-gc. Twice: the first collection lets buffers go whose memory the second one counts.
  for (let round = 0; round < 2; round += 1) globalThis.gc?.()
  const { user, system: kernel } = process.cpuUsage()
  const { rss, heapUsed, external } = process.memoryUsage()
  return {
    rssBytes: rss,
    cpuMs: (user + kernel) / 1_000,
    usedBytes: heapUsed + external,
    loop: threads.find(({ name }) => name === 'proxy-1')?.loopDelay ?? null,
  }
}

process.on('message', async (command: GatewayCommand) => {
  if (command.do === 'open') for (const name of command.names) await open(name)
  if (command.do === 'close') await Promise.all(command.names.map(close))
  process.send?.(command.do === 'figures' ? await figures() : {})
})
process.on('disconnect', () => process.exit(0))
process.send?.({ url: `http://127.0.0.1:${(replies['proxy-1'] as { port: number }).port}` })
