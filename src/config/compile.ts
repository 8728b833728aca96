// ClusterConfig -> Plan: human forms become numbers, names are resolved, folders are absolute. Pure but for `isInGitTree`, which
// comes as a parameter. All problems are reported together.

import { isLoopbackHost } from '../api/callback-url.js'
import { isSafeId } from '../domain/ids.js'
import type { ModelAlias, Plan, SimulationPlan, UpstreamPlan } from './plan.js'
import { nearestName, type Problem, type ProblemPath } from './problems.js'
import { type ClusterConfig, durationMs, simulationSchema, sizeBytes } from './schema.js'

export type SecretReference = { readonly env: string } | { readonly file: string }

/** What of the outside a compiled config depends on. */
export interface Surroundings {
  readonly home: string
  readonly hostName: string
  /** Folder of the config file; relative folders in it start here. */
  readonly baseDir: string
  readonly stateHome: string | null
  readonly cacheHome: string | null
  readonly token: string | null
  readonly hostEnvironment: Readonly<Record<string, string>>
  /** Upstream profiles there are. */
  readonly profiles: readonly string[]
  readonly resolvePath: (base: string, path: string) => string
  /** What a reference to a secret stands for; null = there is nothing. File names are absolute. */
  readonly secretOf: (reference: SecretReference) => string | null
  /** The work tree `folder` lies in, or null. */
  readonly gitTreeOf: (folder: string) => string | null
}

/** Id of the upstream that the embedded simulation is. */
export const SIMULATION_UPSTREAM = 'simulation'

export type Compiled =
  | { readonly ok: true; readonly plan: Plan }
  | { readonly ok: false; readonly problems: readonly Problem[] }

export function compile(config: ClusterConfig, around: Surroundings): Compiled {
  const problems: Problem[] = []
  const say = (path: ProblemPath, message: string) => problems.push({ path, message, type: 'custom' })
  const folder = (path: string) =>
    around.resolvePath(
      around.baseDir,
      path.replace(/^~(?=\/|$)/, () => around.home),
    )

  const simulation = withAdapters(simulationPlan(config), config)
  if (simulation === null && config.upstreams.length === 0)
    say(['upstreams'], 'wanted at least one upstream, or simulation')
  const secret = (reference: SecretReference, path: ProblemPath): string | null => {
    const found = around.secretOf('file' in reference ? { file: folder(reference.file) } : reference)
    // What no HTTP header can carry is no key.
    if (found !== null && /^[\x21-\x7e]+$/.test(found)) return found
    const where = 'file' in reference ? `the file ${reference.file}` : `the environment variable ${reference.env}`
    say(
      path,
      `${where} ${found === null ? 'is missing or empty' : 'holds no key: wanted one line of printable characters'}`,
    )
    return null
  }
  const callbackToken =
    config.security.callbackToken && secret(config.security.callbackToken, ['security', 'callbackToken'])
  const upstreams = upstreamPlans(config, simulation, secret)
  checkUpstreams(config, around.profiles, simulation !== null, say)
  const models = modelAliases(config, upstreams, say)

  const stateDir = folder(config.stateDir ?? `${around.stateHome ?? '~/.local/state'}/sextant`)
  const cacheDir = folder(config.cacheDir ?? `${around.cacheHome ?? '~/.cache'}/sextant`)
  for (const [key, path] of [
    ['stateDir', stateDir],
    ['cacheDir', cacheDir],
  ] as const) {
    const tree = around.gitTreeOf(path)
    if (tree !== null)
      say(
        [key],
        `${path} lies inside the git work tree ${tree}: an agent would find that project's files and instructions; name a folder outside`,
      )
  }

  const token = around.token ?? config.security.token
  if (!isLoopbackHost(config.control.host) && token === null)
    say(
      ['control', 'host'],
      `${config.control.host} is reachable from other machines: set security.token or POLAR_CONTROL_PLANE_TOKEN, or use 127.0.0.1`,
    )
  if (problems.length > 0) return { ok: false, problems }

  const { limits, budgets, retention, control, gateway, security } = config
  const plan: Plan = {
    nodeId: gateway.nodeId ?? (isSafeId(around.hostName) ? around.hostName : 'node-1'),
    control: { host: control.host, port: control.port, publicUrl: trimmed(control.publicUrl) },
    gateway: {
      host: gateway.host,
      port: gateway.port,
      publicUrl: trimmed(gateway.publicUrl),
      proxies: gateway.proxies,
    },
    upstreams,
    models,
    rulesOff: Object.entries(config.rules).flatMap(([rule, isOn]) => (isOn ? [] : [rule])),
    stages: config.stages,
    limits: {
      queuedSessions: limits.queuedSessions,
      samplesPerTask: limits.samplesPerTask,
      inflightPerSession: limits.inflightPerSession,
      admissionTimeoutMs: duration(limits.admissionTimeout),
      creditRecords: limits.creditRecords,
      creditBytes: size(limits.creditBytes),
      sessionCredit: limits.sessionCredit,
      bodyBytes: size(limits.bodyBytes),
      mailbox: limits.mailbox,
      drainMs: duration(limits.drain),
      eventQueue: limits.eventQueue,
      outputBytes: size(limits.outputBytes),
      sessionBytes: size(limits.sessionBytes),
    },
    budgets: {
      buildMs: duration(budgets.build),
      evaluateMs: duration(budgets.evaluate),
      teardownMs: duration(budgets.teardown),
      callbackAttemptMs: duration(budgets.callbackAttempt),
      callbackExpiryMs: duration(budgets.callbackExpiry),
    },
    defaultRuntime: config.defaultRuntime,
    saveDir: config.saveDir === null ? null : folder(config.saveDir ?? `${stateDir}/results`),
    stateDir,
    store: { maxBytes: size(config.store.maxBytes), retentionMs: duration(config.store.retention) },
    cacheDir,
    security: {
      token,
      openRoutes: security.openRoutes,
      callbackHosts: security.callbackHosts,
      callbackToken,
      sourceRoots: security.sourceRoots.map(folder),
    },
    hostEnvironment: around.hostEnvironment,
    compat: config.compat,
    retention: {
      artifactsMs: duration(retention.artifacts),
      resultsMs: duration(retention.results),
      results: retention.resultCount,
    },
    failpoint: config.debug.failpoint,
    simulation,
  }
  return { ok: true, plan: frozen(plan) }
}

/** The plan with the port that the embedded simulation got. */
export const withSimulationUrl = (plan: Plan, url: string): Plan =>
  frozen({
    ...plan,
    upstreams: plan.upstreams.map(upstream =>
      upstream.id === SIMULATION_UPSTREAM ? { ...upstream, urls: [url] } : upstream,
    ),
  })

/** A copy that may be shown: secrets are masked. */
export const shownPlan = (plan: Plan): Plan => ({
  ...plan,
  upstreams: plan.upstreams.map(upstream => (upstream.apiKey ? { ...upstream, apiKey: '********' } : upstream)),
  security: {
    ...plan.security,
    token: plan.security.token === null ? null : '********',
    ...(plan.security.callbackToken && { callbackToken: '********' }),
  },
  hostEnvironment: Object.fromEntries(
    Object.entries(plan.hostEnvironment).map(([key, value]) => [key, value.replace(/\/\/[^@/\s]+@/, '//********@')]),
  ),
})

function simulationPlan(config: ClusterConfig): SimulationPlan | null {
  if (config.simulation) return config.simulation
  if (config.simulation === null || config.upstreams.length > 0) return null
  return simulationSchema.parse({})
}

/** The embedded server serves what adapters the aliases to it name. */
function withAdapters(simulation: SimulationPlan | null, { models, upstreams }: ClusterConfig): SimulationPlan | null {
  if (simulation === null) return null
  const isOurs = (upstream: string) => upstream === SIMULATION_UPSTREAM && !upstreams.some(({ id }) => id === upstream)
  const adapters = Object.values(models).flatMap(({ upstream, adapter }) =>
    adapter !== null && isOurs(upstream) ? [adapter] : [],
  )
  return adapters.length === 0 ? simulation : { ...simulation, adapters: [...new Set(adapters)] }
}

function upstreamPlans(
  config: ClusterConfig,
  simulation: SimulationPlan | null,
  secret: (reference: SecretReference, path: ProblemPath) => string | null,
): readonly UpstreamPlan[] {
  const given = config.upstreams.map((upstream, index) => ({
    ...upstream,
    apiKey: upstream.apiKey && secret(upstream.apiKey, ['upstreams', index, 'apiKey']),
    urls: upstream.urls.map(url => url.replace(/\/+$/, '')),
  }))
  if (simulation === null) return given
  const embedded: UpstreamPlan = {
    id: SIMULATION_UPSTREAM,
    profile: simulation.wire ?? 'vllm',
    // Known once its thread listens: withSimulationUrl.
    urls: [],
    modelServed: simulation.modelName,
    concurrency: 64,
    history: 'messages',
    tokenizer: 'qwen3',
    sampling: { temperature: 1, top_p: 1, top_k: -1 },
    contextWindow: simulation.contextWindow,
    // Its honesty is tested with the program.
    probe: 'off',
  }
  return [...given, embedded]
}

type Say = (path: ProblemPath, message: string) => void

function checkUpstreams(config: ClusterConfig, profiles: readonly string[], simulation: boolean, say: Say): void {
  const seen = new Set<string>(simulation ? [SIMULATION_UPSTREAM] : [])
  config.upstreams.forEach((upstream, index) => {
    if (seen.has(upstream.id))
      say(['upstreams', index, 'id'], `"${upstream.id}" is taken; wanted a name of its own for each upstream`)
    seen.add(upstream.id)
    if (!profiles.includes(upstream.profile))
      say(['upstreams', index, 'profile'], unknown('profile', upstream.profile, profiles))
  })
}

function modelAliases(
  config: ClusterConfig,
  upstreams: readonly UpstreamPlan[],
  say: Say,
): Readonly<Record<string, ModelAlias>> {
  const ids = upstreams.map(upstream => upstream.id)
  for (const [alias, { upstream }] of Object.entries(config.models))
    if (!ids.includes(upstream)) say(['models', alias, 'upstream'], unknown('upstream', upstream, ids))
  const first = ids[0]
  return first === undefined
    ? config.models
    : { default: { upstream: first, adapter: null, trainable: true }, ...config.models }
}

function unknown(kind: string, name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known)
  const hint = nearest === null ? `wanted one of ${known.join(', ')}` : `did you mean "${nearest}"?`
  return `there is no ${kind} "${name}"; ${hint}`
}

/** The schema has refused what is no duration or size. */
const duration = (text: string): number => durationMs(text) ?? 0
const size = (text: string): number => sizeBytes(text) ?? 0
const trimmed = (url: string | null): string | null => url?.replace(/\/+$/, '') ?? null

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) frozen(inner)
  }
  return value
}
