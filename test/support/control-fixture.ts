// The control actor over real HTTP, with a rollout that the test plays.

import { controlProps } from '../../actors/control/actor.js'
import { realClock } from '../../actors/system/clock.js'
import type { ControlPorts, NodeInfo, Submitted } from '../../src/api/ports.js'
import type { TaskSnapshot } from '../../src/api/task-json.js'
import { planFromText } from '../../src/config/load.js'
import type { Plan } from '../../src/config/plan.js'
import type { InferenceStatus } from '../../src/domain/inference.js'
import type { TaskRequest } from '../../src/domain/task.js'
import { createRealTimeSystem } from './test-system.js'

export const TOKEN = 'control-token-of-the-test'

/** A plan as `cluster.json` would give it; `config` in its words. */
export const planOf = (config: Readonly<Record<string, unknown>> = {}): Plan =>
  planFromText(JSON.stringify({ control: { port: 0 }, ...config }), 'test', {
    path: null,
    profiles: ['vllm'],
    environment: { home: '/nowhere', stateHome: null, cacheHome: null, token: null, variables: { PATH: '/bin' } },
  })

export const snapshot = (over: Partial<TaskSnapshot> = {}): TaskSnapshot => ({
  taskId: 't-1',
  generation: 1,
  status: 'running',
  totalSessions: 2,
  results: [],
  resultPaths: [],
  sessions: [],
  delivery: null,
  createdAtMs: 1_700_000_000_000,
  updatedAtMs: 1_700_000_000_000,
  ...over,
})

const node: NodeInfo = {
  nodeId: 'node-1',
  gatewayUrl: 'http://127.0.0.1:9',
  draining: false,
  workers: { init: 4, running: 2, postrun: 4 },
  metrics: {
    initQueueDepth: 1,
    initInflight: 0,
    readyDepth: 2,
    runInflight: 2,
    postrunQueueDepth: 0,
    postrunInflight: 1,
  },
}

const running: InferenceStatus = { pause: null, policyVersion: null, inflight: 0, waiting: 0, isComplete: true }

/** What the test plays; every part may be replaced. */
export const fakePorts = (over: Partial<ControlPorts> = {}): ControlPorts & { readonly submitted: TaskRequest[] } => {
  const submitted: TaskRequest[] = []
  return {
    submitted,
    submit: async (request): Promise<Submitted> => {
      submitted.push(request)
      return { ok: true, taskId: request.task_id, warnings: [] }
    },
    task: async taskId => (taskId === 't-1' ? snapshot() : null),
    cancel: async taskId => (taskId === 't-1' ? snapshot({ status: 'cancelled' }) : null),
    list: async () => ({ tasks: [{ taskId: 't-1', status: 'running' }], pendingSessions: 2 }),
    node: async () => node,
    inference: async () => running,
    pause: async () => running,
    resume: async () => running,
    upstreams: () => [],
    ...over,
  }
}

export interface Control {
  readonly url: string
  /** With the token unless `headers` say otherwise. */
  fetch(path: string, init?: RequestInit): Promise<Response>
  publish(type: string, data: Record<string, string | number>): void
  stop(): Promise<unknown>
}

export async function startControl(
  t: { teardown(run: () => unknown): unknown },
  ports: ControlPorts = fakePorts(),
  config: Readonly<Record<string, unknown>> = {},
): Promise<Control> {
  const { system } = createRealTimeSystem(t, realClock())
  const plan = planOf(config)
  const ref = system.spawn(
    controlProps({
      plan,
      plugins: {
        harnesses: { codex: { check: () => [] } },
        runtimes: { local: { check: () => [] } },
        builders: { per_request: { check: () => [] } },
        evaluators: {},
      },
      auth: { token: TOKEN, openRoutes: plan.security.openRoutes },
      ports,
      encode: result => JSON.stringify({ session_id: result.sessionId }),
      encodeBinary: async result => Buffer.from(`binary ${result.sessionId}`),
      encodeReference: ({ sessionId }, generation) => JSON.stringify({ session_id: sessionId, generation }),
    }),
    'control',
  )
  const reply = await system.ask(ref, { type: 'control-described' }, 5_000)
  if (reply.type === 'control-failed') throw new Error(reply.error.message)
  const { url } = reply
  return {
    url,
    fetch: (path, init = {}) => fetch(`${url}${path}`, { headers: { 'x-polar-control-token': TOKEN }, ...init }),
    publish: (type, data) => ref.tell({ type: 'publish-event', event: { type, data } }),
    stop: () => system.stop(5_000),
  }
}

export const validTask = {
  task_id: 't-1',
  instruction: 'go',
  runtime: { backend: 'local' },
  agent: { harness: 'codex' },
}
