// The whole service in this process, on the embedded simulation, with folders of its own below the system's temporary folder.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Service, type ServiceOptions, startService } from '../../actors/service.js'
import { type Connection, connectionTo } from '../../src/cli/connection.js'
import { type HostEnvironment, planFromText } from '../../src/config/load.js'
import type { Plan } from '../../src/config/plan.js'
import { upstreams } from '../../src/upstreams/registry.js'
import { type RecordingLogger, recordingLogger } from './test-system.js'

interface Teardown {
  teardown(run: () => unknown): unknown
}

export function scratch(t: Teardown): string {
  const folder = mkdtempSync(join(tmpdir(), 'sextant-service-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** `config` in the words of cluster.json. */
export function servicePlan(folder: string, config: Readonly<Record<string, unknown>> = {}): Plan {
  const environment: HostEnvironment = {
    home: folder,
    stateHome: null,
    cacheHome: null,
    token: null,
    variables: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: folder },
  }
  const text = JSON.stringify({
    control: { port: 0 },
    stages: { init: 2, ready: 2, running: 2, postrun: 2 },
    stateDir: join(folder, 'state'),
    cacheDir: join(folder, 'cache'),
    saveDir: join(folder, 'results'),
    ...config,
  })
  return planFromText(text, 'test', { path: null, profiles: Object.keys(upstreams), environment })
}

export interface RunningService {
  readonly service: Service
  readonly connection: Connection
  readonly log: RecordingLogger
  readonly folder: string
}

export async function runService(
  t: Teardown,
  config: Readonly<Record<string, unknown>> = {},
  options: Partial<ServiceOptions> = {},
  folder = scratch(t),
): Promise<RunningService> {
  const log = recordingLogger()
  const service = await startService(servicePlan(folder, config), {
    threads: 'real',
    log,
    logLevel: 'warn',
    ...options,
  })
  const connection = connectionTo(service.controlUrl, service.token)
  t.teardown(async () => {
    await connection.close()
    await service.stop()
  })
  return { service, connection, log, folder }
}

/** A task for the small agent of test/fixtures/agents: `scenario` names the simulation's script. */
export function agentTask(over: Readonly<Record<string, unknown>> = {}, env: Readonly<Record<string, string>> = {}) {
  return {
    task_id: 'task-1',
    instruction: 'Write the greeting.\n\nScenario: hello',
    num_samples: 1,
    timeout_seconds: 60,
    runtime: {
      backend: 'local',
      prepare: [
        {
          type: 'upload_file',
          source: join(process.cwd(), 'test/fixtures/agents/chat-agent.mjs'),
          target: 'agent.mjs',
        },
      ],
    },
    agent: {
      harness: 'shell',
      custom_shell: { command: `${JSON.stringify(process.execPath)} agent.mjs`, env },
    },
    builder: { strategy: 'prefix_merging' },
    evaluator: { strategy: 'session_completed' },
    sampling: { seed: 1 },
    ...over,
  }
}
