// A whole plan for tests: one node, small stages, folders in a scratch place, no upstream that is ever called.

import { join } from 'node:path'
import type { Plan } from '../../src/config/plan.js'

export function testPlan(folder: string, over: Partial<Plan> = {}): Plan {
  return {
    nodeId: 'node-1',
    control: { host: '127.0.0.1', port: 0, publicUrl: null },
    gateway: { host: '127.0.0.1', port: 0, publicUrl: null, proxies: 1 },
    upstreams: [
      {
        id: 'main',
        profile: 'vllm',
        urls: ['http://127.0.0.1:9'],
        modelServed: 'served',
        concurrency: 4,
        history: 'messages',
        tokenizer: null,
        sampling: {},
        contextWindow: 32_768,
        probe: 'off',
      },
    ],
    models: { default: { upstream: 'main', adapter: null, trainable: true } },
    stages: { init: 2, ready: 2, running: 2, postrun: 2 },
    limits: {
      queuedSessions: 1000,
      samplesPerTask: 100,
      inflightPerSession: 8,
      admissionTimeoutMs: 60_000,
      creditRecords: 64,
      creditBytes: 32 * 1024 * 1024,
      sessionCredit: 8,
      bodyBytes: 64 * 1024 * 1024,
      mailbox: 1024,
      drainMs: 30_000,
      eventQueue: 256,
      outputBytes: 1024 * 1024,
      sessionBytes: 64 * 1024 * 1024,
    },
    budgets: {
      buildMs: 60_000,
      evaluateMs: 60_000,
      teardownMs: 30_000,
      callbackAttemptMs: 10_000,
      callbackExpiryMs: 60_000,
    },
    defaultRuntime: null,
    saveDir: null,
    stateDir: join(folder, 'state'),
    store: { maxBytes: 256 * 1024 * 1024, retentionMs: 60_000 },
    cacheDir: join(folder, 'cache'),
    security: { token: null, openRoutes: [], callbackHosts: [], sourceRoots: [] },
    hostEnvironment: { PATH: process.env.PATH ?? '/usr/bin:/bin' },
    compat: { unknownKeys: 'refuse' },
    retention: { artifactsMs: 60_000, resultsMs: 60_000, results: 100 },
    simulation: null,
    ...over,
  }
}
