// The task request as zod schemas (contract 3.1 to 3.5, decisions.md section 2). Strict at every depth except the free maps, whose
// keys are checked by the component that owns them. Every default is filled in here; what needs the plan or the plugins is in checks.ts.

import * as z from 'zod'
import { isSafeId } from '../domain/ids.js'
import type { JsonObject } from '../domain/json.js'
import type { AgentSpec, EvaluatorSpec, RuntimeSpec, SamplingSpec, TaskRequest } from '../domain/task.js'

const notBlank = z
  .string()
  .trim()
  .refine(text => text !== '', 'must not be empty')
/** A map whose keys are free; values are any JSON. */
const freeMap = z.record(z.string(), z.json()).transform(map => map as JsonObject)
const environment = z.record(
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'wanted a name of letters, digits and "_", not starting with a digit'),
  z.string().refine(text => !text.includes('\0'), 'must not hold a NUL character'),
)

const upload = {
  source: notBlank,
  target: notBlank,
}
const prepareAction = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('upload_file'), ...upload }),
  z.strictObject({ type: z.literal('upload_dir'), ...upload }),
  z.strictObject({
    type: z.literal('exec'),
    command: notBlank,
    cwd: notBlank.exactOptional(),
    env: environment.exactOptional(),
    max_attempts: z.int().min(1).max(10).default(1),
    retry_backoff_seconds: z.number().min(0).max(60).default(0),
  }),
])

export const runtimeSchema = z.strictObject({
  backend: notBlank.default('docker'),
  image: notBlank.nullable().default(null),
  prepare: z.array(prepareAction).default([]),
  eval_prepare: z.array(prepareAction).nullable().default(null),
  env: environment.default({}),
  network: notBlank.default('host'),
  workdir: notBlank.nullable().default(null),
  direct_exec_init_command: notBlank.nullable().default(null),
  cpus: z.number().positive().nullable().default(null),
  memory_mb: z.number().positive().nullable().default(null),
  storage_mb: z.number().positive().nullable().default(null),
  gpus: z.int().min(0).default(0),
  allow_internet: z.boolean().default(true),
  internet_volumes: z.array(notBlank).default([]),
  import_path: notBlank.nullable().default(null),
  kwargs: freeMap.default({}),
}) satisfies z.ZodType<RuntimeSpec>

const mcpServer = z
  .strictObject({
    name: notBlank,
    transport: z.enum(['stdio', 'sse', 'streamable-http']),
    command: notBlank.exactOptional(),
    args: z.array(z.string()).exactOptional(),
    url: z.url({ protocol: /^https?$/, error: 'wanted an http or https URL' }).exactOptional(),
  })
  .superRefine((server, context) => {
    const wanted = server.transport === 'stdio' ? 'command' : 'url'
    if (server[wanted] === undefined)
      context.addIssue({
        code: 'custom',
        path: [wanted],
        message: `required: transport "${server.transport}" needs ${wanted}`,
      })
  })

const execInput = z.strictObject({
  command: notBlank,
  cwd: notBlank.exactOptional(),
  env: environment.exactOptional(),
})

const agentSchema = z
  .strictObject({
    harness: notBlank.nullable().default(null),
    import_path: notBlank.nullable().default(null),
    model_name: notBlank.nullable().default(null),
    settings: freeMap.default({}),
    env: environment.default({}),
    mcp_servers: z.array(mcpServer).default([]),
    skills_path: notBlank.nullable().default(null),
    custom_shell: execInput.nullable().default(null),
  })
  .superRefine((agent, context) => {
    const say = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message })
    if ((agent.harness === null) === (agent.import_path === null))
      say('harness', 'wanted exactly one of harness and import_path')
    if (agent.harness === 'shell') {
      if (agent.custom_shell === null) say('custom_shell', 'required: harness "shell" runs its command')
      if (agent.mcp_servers.length > 0) say('mcp_servers', 'must be empty for harness "shell"')
      if (agent.skills_path !== null) say('skills_path', 'must be null for harness "shell"')
    } else if (agent.custom_shell !== null) say('custom_shell', 'allowed only for harness "shell"')
  }) satisfies z.ZodType<AgentSpec>

const builderSchema = z.strictObject({ strategy: notBlank, config: freeMap.default({}) })

const evaluatorSchema = z.strictObject({
  strategy: notBlank,
  config: freeMap.default({}),
  env: environment.default({}),
  refresh_runtime: z.boolean().nullable().default(null),
}) satisfies z.ZodType<EvaluatorSpec>

const rule = <T extends z.ZodNumber>(value: T) =>
  z
    .union([value, z.strictObject({ value, mode: z.enum(['force', 'default', 'pass']).default('default') })])
    .transform(given => (typeof given === 'object' ? given : { value: given, mode: 'default' as const }))
    .exactOptional()

const samplingSchema = z.strictObject({
  temperature: rule(z.number().min(0)),
  top_p: rule(z.number().gt(0).max(1)),
  /** -1 and 0 = off. */
  top_k: rule(z.int().min(-1)),
  min_p: rule(z.number().min(0).max(1)),
  presence_penalty: rule(z.number().min(-2).max(2)),
  frequency_penalty: rule(z.number().min(-2).max(2)),
  max_tokens: rule(z.int().min(1)),
  seed: rule(z.int().min(0)),
}) satisfies z.ZodType<SamplingSpec>

const count = z.int().min(1).nullable().default(null)
const limitsSchema = z.strictObject({
  max_turns: count,
  max_input_tokens: count,
  max_output_tokens: count,
  max_total_tokens: count,
  context_window: count,
})

/** Two keys of `metadata` have a meaning; all others are passed through unchanged. */
const metadataSchema = freeMap.superRefine((metadata, context) => {
  const timeout = metadata['agent_timeout']
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0))
    context.addIssue({
      code: 'custom',
      path: ['agent_timeout'],
      message: 'wanted a number of seconds above 0',
    })
  const base = metadata['eval_sampling_seed_base']
  if (base !== undefined && seedBase(metadata) === null)
    context.addIssue({
      code: 'custom',
      path: ['eval_sampling_seed_base'],
      message: 'wanted a whole number of at least 0',
    })
})

/** `metadata.eval_sampling_seed_base` as a number: an integer or its decimal text; null = not given, or not a seed. */
export function seedBase(metadata: JsonObject): number | null {
  const given = metadata['eval_sampling_seed_base']
  const value = typeof given === 'string' && /^\d+$/.test(given) ? Number(given) : given
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
}

export const taskSchema = z
  .strictObject({
    task_id: z
      .string()
      .refine(isSafeId, 'wanted a letter or digit, then up to 127 of letters, digits, "_", "." and "-"'),
    instruction: z.string(),
    num_samples: z.int().min(1).default(1),
    dispatch_priority: z.int().min(0).max(100).default(0),
    early_stop_min_usable_sessions: z.int().min(1).nullable().default(null),
    timeout_seconds: z.number().gt(0).default(600),
    runtime: runtimeSchema.nullable().default(null),
    agent: agentSchema,
    builder: builderSchema.default({ strategy: 'per_request', config: {} }),
    evaluator: evaluatorSchema.nullable().default(null),
    callback_url: z.string().nullable().default(null),
    callback_results: z.enum(['full', 'references']).default('full'),
    metadata: metadataSchema.default({}),
    sampling: samplingSchema.default({}),
    limits: limitsSchema.prefault({}),
    models: z.record(notBlank, notBlank).default({}),
  })
  .superRefine((task, context) => {
    if ((task.early_stop_min_usable_sessions ?? 0) > task.num_samples)
      context.addIssue({
        code: 'custom',
        path: ['early_stop_min_usable_sessions'],
        message: `cannot exceed num_samples (${task.num_samples})`,
      })
  }) satisfies z.ZodType<TaskRequest>
