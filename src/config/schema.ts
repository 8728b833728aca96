// The config file: type, check, defaults and the JSON Schema for editors, all from one place. Durations and sizes stay in their human
// form here ("30s", "64MiB"); compile.ts turns them into numbers. Unknown keys are refused at every depth.

import bytes from 'bytes'
import ms from 'ms'
import * as z from 'zod'
import { runtimeSchema } from '../api/task-schema.js'
import { isSafeId } from '../domain/ids.js'
import { PROMPT_RULES, type RuleName } from '../domain/rules.js'
import { FAILPOINT_PATTERN, FAILPOINTS } from '../observability/failpoints.js'
import { DRIFT_FORMS } from '../simulation/drift.js'
import { FAULT_PATTERN, FAULTS } from '../simulation/faults.js'

/** Milliseconds of `30s`, `20m`, `2h`, `7d`, `250ms`; null when it is none. */
export function durationMs(text: string): number | null {
  if (!/^\d+(\.\d+)?\s*[a-zA-Z]+$/.test(text.trim())) return null
  const value = ms(text.trim() as ms.StringValue)
  return typeof value === 'number' && Number.isFinite(value) ? Math.round(value) : null
}

/** Bytes of `512KB`, `64MiB`, `2GiB` (K = 1,024 in both spellings); null when it is none. */
export function sizeBytes(text: string): number | null {
  const plain = text.trim().replace(/^([\d.]+\s*[KMGT])iB$/i, '$1B')
  return /^\d+(\.\d+)?\s*[KMGT]?B$/i.test(plain) ? bytes.parse(plain) : null
}

const duration = z
  .string()
  .refine(text => durationMs(text) !== null, 'wanted a duration with its unit, like "250ms", "30s", "20m" or "7d"')
const size = z
  .string()
  .refine(text => (sizeBytes(text) ?? 0) > 0, 'wanted a size with its unit, like "512KB", "64MiB" or "2GiB"')
const count = z.int().min(1)
const name = z
  .string()
  .refine(isSafeId, 'wanted a letter or digit, then up to 127 of letters, digits, "_", "." and "-"')
const host = z.string().regex(/^[^\s/]+$/, 'wanted a host name or address')
const port = z.int().min(0).max(65_535)
const url = z
  .url({ protocol: /^https?$/, error: 'wanted an http or https URL' })
  .refine(text => !/[?#]/.test(text), 'must not hold a query or fragment')
const folder = z.string().min(1)
/** Where a secret stands: never the secret itself. */
const secretReference = z.union([
  z.strictObject({ env: z.string().regex(/^[A-Za-z_]\w*$/, 'wanted the name of an environment variable') }),
  z.strictObject({ file: folder }),
])

const control = z.strictObject({
  host: host.default('127.0.0.1').describe('Loopback: whoever reaches the port may start programs.'),
  port: port.default(8080).describe('The port the contract names. 0 = any free port.'),
  publicUrl: url.nullable().default(null).describe('How others reach it. null = http://host:port.'),
})

const gateway = z.strictObject({
  nodeId: name.nullable().default(null).describe('Name of this node in results. null = the host name.'),
  host: host.default('127.0.0.1').describe('Agents of runtime "local" run on this machine.'),
  port: port.default(0).describe('Model port of the first proxy; the next ones follow. 0 = any free port.'),
  publicUrl: url.nullable().default(null).describe('How agents reach the model ports. null = http://host:port.'),
  proxies: z.int().min(1).max(64).default(1).describe('Pairs of proxy and merge threads. One carries a workstation.'),
})

const upstream = z.strictObject({
  id: name,
  profile: z.string().min(1).default('vllm').describe('The kind of inference server; vLLM tells ids and logprobs.'),
  urls: z.array(url).min(1).describe('Replicas, without /v1.'),
  modelServed: z.string().min(1).describe('The model name the server knows.'),
  concurrency: count.default(64).describe('Requests in flight to it; a replica batches about as many.'),
  history: z.enum(['messages', 'tokens']).default('messages').describe('What is sent: chat messages, or ids.'),
  tokenizer: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Folder with tokenizer.json, or "qwen3" for the bundled one. null = ask the server.'),
  sampling: z
    .record(z.string(), z.number())
    .default({})
    .describe('Sampling the server applies when a request names none, as far as known.'),
  contextWindow: count.nullable().default(null).describe('Tokens. null = not known.'),
  probe: z
    .enum(['start', 'off'])
    .default('start')
    .describe('Probed at the start, and trained on only if it passes; or taken as it is.'),
  apiKey: secretReference
    .nullable()
    .default(null)
    .describe(
      'Where the key of the server (vLLM and SGLang: --api-key) stands: { "env": "NAME" } or { "file": "path" }, read at the start; sent as ' +
        'Authorization: Bearer. Never the key itself.',
    ),
  trainConstrained: z
    .boolean()
    .default(false)
    .describe(
      'Train on calls drawn under a grammar (JSON formats, forced or strict tools) too. Right only where logprobs are those of ' +
        'what the grammar left (vLLM; others with processed logprobs) and the trainer weighs by them.',
    ),
})

const modelAlias = z.strictObject({
  upstream: z.string().min(1),
  adapter: z.string().min(1).nullable().default(null).describe('Served name of a LoRA adapter. null = the model.'),
  trainable: z.boolean().default(true).describe('Whether calls to it may be trained on.'),
})

/** `{ name: false }` switches a rule off. */
const rules = z
  .strictObject(
    Object.fromEntries(
      Object.entries(PROMPT_RULES).map(([key, { does, why, off }]) => [
        key,
        z.boolean().default(true).describe(`${does}: ${why}. false: ${off}.`),
      ]),
    ) as Record<RuleName, z.ZodDefault<z.ZodBoolean>>,
  )
  .describe('Rules by which the engine gets something else than the harness sent; each use is counted in the result.')

const stages = z.strictObject({
  init: count.default(4).describe('Sessions that prepare at once (contract 5.2).'),
  ready: count.default(4).describe('Prepared sessions that wait for a run slot; each holds a sandbox.'),
  running: count.default(2).describe('Agents that run at once (contract 5.2).'),
  postrun: count.default(4).describe('Sessions that build and grade at once (contract 5.2).'),
})

const limits = z.strictObject({
  queuedSessions: count.default(100_000).describe('Above it, submit answers 429.'),
  samplesPerTask: count.default(1_024).describe('Above it, submit answers 422; far over any group size in use.'),
  inflightPerSession: count.default(8).describe('Model calls of one session at once; sub-agents come in handfuls.'),
  admissionTimeout: duration.default('60s').describe('A call waits this long for a slot before it gets 429.'),
  creditRecords: count.default(64).describe('Captures on their way from proxy to merge, per pair.'),
  creditBytes: size.default('32MiB').describe('The same in bytes.'),
  sessionCredit: count.default(8).describe('The same per session, so that one session stalls no other.'),
  bodyBytes: size.default('64MiB').describe('Request bodies; images in long histories reach 20 MB.'),
  mailbox: count.default(1_024).describe('Messages waiting before one actor.'),
  drain: duration.default('30s').describe('Time that running sessions get after SIGTERM.'),
  eventQueue: count.default(256).describe('Events waiting before one subscriber of /events (contract 2.3).'),
  outputBytes: size.default('1MiB').describe('Output of a command that is kept in memory; files hold all of it.'),
  sessionBytes: size.default('256MiB').describe('What one session may keep in memory of captured calls.'),
})

const budgets = z.strictObject({
  build: duration.default('60s').describe('Ledger to trajectory; seconds for the longest sessions.'),
  evaluate: duration.default('20m').describe('Test suites of real repositories take minutes.'),
  teardown: duration.default('30s').describe('Killing what a session started, and the proof of it.'),
  callbackAttempt: duration.default('10s').describe('One POST of a result (contract 7.10).'),
  callbackExpiry: duration.default('24h').describe('How long a result is offered again.'),
})

const security = z.strictObject({
  token: z
    .string()
    .min(16, 'wanted at least 16 characters')
    .nullable()
    .default(null)
    .describe('Control token. null = POLAR_CONTROL_PLANE_TOKEN, else a random one in stateDir/control-token.'),
  openRoutes: z
    .array(z.string().regex(/^(GET|POST|DELETE) \/\S*$/, 'wanted "METHOD /path", like "POST /rollout/task/submit"'))
    .default([])
    .describe('Routes that need no token, for bridges that send none. Health is always open.'),
  callbackHosts: z
    .array(z.string().min(1))
    .default([])
    .describe('Hosts results may be posted to, besides loopback: names, host:port, or "*".'),
  callbackToken: secretReference
    .nullable()
    .default(null)
    .describe(
      'A secret of its own (not the control token) that each posted result carries as X-Polar-Control-Token, so that receivers can tell who ' +
        'sent it: { "env": "NAME" } or { "file": "path" }. null = none is sent.',
    ),
  sourceRoots: z
    .array(folder)
    .default([])
    .describe('Folders that tasks may upload from. Empty = whatever the service may read.'),
})

const store = z.strictObject({
  maxBytes: size
    .default('8GiB')
    .describe('What captured records may take on disk. Finished sessions go first, others never.'),
  retention: duration.default('7d').describe('How long the records of a finished session stay readable at the most.'),
})

const retention = z.strictObject({
  artifacts: duration.default('24h').describe('Session folders (contract 10.10).'),
  results: duration.default('7d').describe('Results in memory (contract 10.10); files stay.'),
  resultCount: count.default(100_000).describe('The same as a number of sessions.'),
})

const debug = z.strictObject({
  failpoint: z
    .string()
    .regex(FAILPOINT_PATTERN, `wanted one of ${Object.keys(FAILPOINTS).join(', ')}, or one with @COUNT`)
    .nullable()
    .default(null)
    .describe(
      `For tests: the service kills itself (SIGKILL) there; "name@3" the third time. ${Object.entries(FAILPOINTS)
        .map(pair => pair.join(': '))
        .join('. ')}.`,
    ),
})

export const simulationSchema = z.strictObject({
  port: port.default(0).describe('0 = any free port.'),
  modelName: z.string().min(1).default('qwen3-sim').describe('Its tokenizer and template are Qwen3.'),
  contextWindow: count.default(32_768).describe('Tokens; what Qwen3 was trained with.'),
  seed: z.int().min(0).default(7).describe('Seed of calls that bring none.'),
  prefillMsPer1k: z
    .number()
    .min(0)
    .default(0)
    .describe('Milliseconds per 1,000 prompt tokens. 0 = as fast as it goes.'),
  decodeMsPerToken: z.number().min(0).default(0).describe('Milliseconds per sampled token. 0 = as fast as it goes.'),
  solveProbability: z.number().min(0).max(1).default(0.5).describe('Share of samples that write the right fix.'),
  drift: z
    .array(z.enum(Object.keys(DRIFT_FORMS)))
    .default([])
    .describe(
      `Ways to break the prefix on purpose. ${Object.entries(DRIFT_FORMS)
        .map(pair => pair.join(': '))
        .join('. ')}.`,
    ),
  logprobsMode: z
    .enum(['raw_logprobs', 'processed_logprobs'])
    .default('raw_logprobs')
    .describe("Logprobs of the policy's own distribution, or of that after temperature and cuts."),
  wire: z.enum(['vllm', 'sglang']).default('vllm').describe('Whose API it speaks.'),
  faults: z
    .array(z.string().regex(FAULT_PATTERN, `wanted one of ${Object.keys(FAULTS).join(', ')}, or one with @CALL`))
    .default([])
    .describe(
      `Shortcomings to plant, for tests; "name@3" plants one in the third chat call only. ${Object.entries(FAULTS)
        .map(pair => pair.join(': '))
        .join('. ')}.`,
    ),
})

export const configSchema = z.strictObject({
  $schema: z.string().optional().describe('For editors; not read.'),
  control: control.prefault({}),
  gateway: gateway.prefault({}),
  upstreams: z.array(upstream).default([]).describe('Inference servers. Empty = the embedded simulation.'),
  models: z
    .record(z.string().min(1), modelAlias)
    .default({})
    .describe('Aliases that tasks map model names to. `default` is the first upstream unless it is given.'),
  rules: rules.prefault({}),
  stages: stages.prefault({}),
  limits: limits.prefault({}),
  budgets: budgets.prefault({}),
  defaultRuntime: runtimeSchema
    .nullable()
    .default(null)
    .describe('Runtime of tasks that name none. null = such tasks are refused.'),
  saveDir: folder
    .nullable()
    .optional()
    .describe('Where result files go. Absent = results/ of stateDir, where `inspect` looks; null = none are written.'),
  stateDir: folder.nullable().default(null).describe('null = $XDG_STATE_HOME/sextant, else ~/.local/state/sextant.'),
  cacheDir: folder.nullable().default(null).describe('null = $XDG_CACHE_HOME/sextant, else ~/.cache/sextant.'),
  store: store.prefault({}).describe('The store of captured records, below stateDir.'),
  security: security.prefault({}),
  compat: z
    .strictObject({
      unknownKeys: z
        .enum(['refuse', 'warn'])
        .default('refuse')
        .describe('Unknown keys of a task: refused, or ignored and listed in the answer.'),
    })
    .prefault({}),
  bus: z.literal('local').default('local').describe('How nodes talk to each other: all in one process.'),
  retention: retention.prefault({}),
  debug: debug.prefault({}),
  simulation: simulationSchema
    .nullable()
    .optional()
    .describe('The embedded inference server. Absent = started only when there is no upstream.'),
})

/** The config file as parsed, defaults filled in. */
export type ClusterConfig = z.output<typeof configSchema>

/** JSON Schema of the config file, for editors. */
export const configJsonSchema = (): Record<string, unknown> => ({
  ...z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' }),
  title: 'Sextant cluster.json',
})
