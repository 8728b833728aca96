// Specs with every default filled in, for tests that care about one field.
import type { SessionId, TaskId } from '../../src/domain/ids.js'
import type { SessionSpec } from '../../src/domain/session.js'
import type { AgentSpec } from '../../src/domain/task.js'
import { localSpec } from './local-runtime.js'

export const agentSpec = (fields: Partial<AgentSpec> = {}): AgentSpec => ({
  harness: 'shell',
  import_path: null,
  model_name: null,
  settings: {},
  env: {},
  mcp_servers: [],
  skills_path: null,
  custom_shell: null,
  ...fields,
})

export const sessionSpec = (fields: Partial<SessionSpec> = {}): SessionSpec => ({
  sessionId: 's-test' as SessionId,
  taskId: 'task-1' as TaskId,
  sampleIndex: 0,
  instruction: 'Create hello.txt',
  priority: 0,
  timeoutSeconds: 600,
  agentTimeoutSeconds: null,
  runtime: localSpec,
  agent: agentSpec(),
  builder: { strategy: 'per_request', config: {} },
  evaluator: null,
  sampling: {},
  samplingSeed: null,
  limits: {
    max_turns: null,
    max_input_tokens: null,
    max_output_tokens: null,
    max_total_tokens: null,
    context_window: null,
  },
  models: {},
  metadata: {},
  ...fields,
})
