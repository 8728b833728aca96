// Config file -> Plan: reads the file (JSONC), the environment (only here) and the disk. Throws one CONFIG_INVALID whose message
// lists every problem with its path; `details.problems` holds the same for programs.

import { existsSync, readFileSync } from 'node:fs'
import { homedir, hostname } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { type ParseError, parse, printParseErrorCode } from 'jsonc-parser'
import { RolloutError } from '../domain/errors.js'
import { compile, type Surroundings } from './compile.js'
import type { Plan } from './plan.js'
import { formatPath, type Problem, zodProblems } from './problems.js'
import { configSchema } from './schema.js'

/** Names that child environments may be built from; npm's own settings only as far as they say where packages come from. */
const HOST_NAMES =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|TZ|LANG|LANGUAGE|LC_\w+|https?_proxy|no_proxy|all_proxy|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|npm_config_(registry|cafile|userconfig|cache|globalconfig))$/i

export interface HostEnvironment {
  readonly home: string
  readonly stateHome: string | null
  readonly cacheHome: string | null
  readonly token: string | null
  readonly variables: Readonly<Record<string, string>>
  /** A variable that the config names as a secret; it is in nobody's `variables`. Absent = there are none. */
  readonly secret?: (name: string) => string | null
}

/** The service's own environment, as far as anything of ours may depend on it. */
export function readEnvironment(variables: NodeJS.ProcessEnv = process.env): HostEnvironment {
  const text = (name: string) => variables[name]?.trim() || null
  return {
    home: text('HOME') ?? homedir(),
    stateHome: text('XDG_STATE_HOME'),
    cacheHome: text('XDG_CACHE_HOME'),
    token: text('POLAR_CONTROL_PLANE_TOKEN'),
    secret: text,
    variables: Object.fromEntries(
      Object.entries(variables).flatMap(([name, value]) =>
        value !== undefined && HOST_NAMES.test(name) ? [[name, value] as const] : [],
      ),
    ),
  }
}

export interface LoadOptions {
  /** Path of the config file; null = defaults alone, with the embedded simulation. */
  readonly path: string | null
  /** Names of the upstream profiles there are. */
  readonly profiles: readonly string[]
  readonly environment?: HostEnvironment
  /** Values laid over the file, below the top-level keys (`{ control: { port: 0 } }`). */
  readonly overrides?: Readonly<Record<string, unknown>>
}

export function loadPlan(options: LoadOptions): Plan {
  const text = options.path === null ? '{}' : readConfig(options.path)
  return planFromText(text, options.path ?? 'the built-in config', options)
}

/** The same from the text of a config; `name` is what messages call it. */
export function planFromText(text: string, name: string, options: LoadOptions): Plan {
  const environment = options.environment ?? readEnvironment()
  const input = merged(parseJsonc(text, name), options.overrides ?? {})
  const parsed = configSchema.safeParse(input)
  if (!parsed.success) throw invalid(name, zodProblems(configSchema, parsed.error, input))
  const around: Surroundings = {
    home: environment.home,
    hostName: hostname(),
    baseDir: options.path === null ? process.cwd() : dirname(resolve(options.path)),
    stateHome: environment.stateHome,
    cacheHome: environment.cacheHome,
    token: environment.token,
    hostEnvironment: environment.variables,
    profiles: options.profiles,
    resolvePath: (base, path) => resolve(base, path),
    secretOf: reference =>
      'file' in reference ? secretFile(reference.file) : (environment.secret?.(reference.env) ?? null),
    gitTreeOf,
  }
  const compiled = compile(parsed.data, around)
  if (!compiled.ok) throw invalid(name, compiled.problems)
  return compiled.plan
}

/** The git work tree that holds `folder` (which need not exist yet), or null. */
export function gitTreeOf(folder: string): string | null {
  for (let current = resolve(folder); ; current = dirname(current)) {
    if (existsSync(join(current, '.git'))) return current
    if (dirname(current) === current) return null
  }
}

function secretFile(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim() || null
  } catch {
    return null
  }
}

function readConfig(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no such file' : String(cause)
    throw new RolloutError('CONFIG_INVALID', `config ${path}: ${reason}`, { cause })
  }
}

function parseJsonc(text: string, name: string): unknown {
  const errors: ParseError[] = []
  const value: unknown = parse(text.replace(/^\uFEFF/, ''), errors, { allowTrailingComma: true })
  if (errors.length === 0) return value
  const problems = errors.map(({ error, offset }) => {
    const before = text.slice(0, offset).split('\n')
    return `  line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ${printParseErrorCode(error)}`
  })
  throw new RolloutError('CONFIG_INVALID', `config ${name} is no JSON:\n${problems.join('\n')}`)
}

function merged(base: unknown, overrides: Readonly<Record<string, unknown>>): unknown {
  if (typeof base !== 'object' || base === null || Array.isArray(base)) return base
  const result: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(overrides)) {
    const inner = result[key]
    const both = [inner, value].every(part => typeof part === 'object' && part !== null && !Array.isArray(part))
    result[key] = both ? { ...(inner as object), ...(value as object) } : value
  }
  return result
}

function invalid(name: string, problems: readonly Problem[]): RolloutError {
  const lines = problems.map(problem => `  ${formatPath(problem.path)}: ${problem.message}`)
  return new RolloutError('CONFIG_INVALID', `config ${name} is refused:\n${lines.join('\n')}`, {
    details: { problems },
  })
}
