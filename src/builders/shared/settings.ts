// Settings of a builder, checked at submit and read at build.

import type { z } from 'zod'
import { RolloutError } from '../../domain/errors.js'
import type { JsonObject } from '../../domain/json.js'

export interface SettingProblem {
  readonly path: string
  readonly message: string
}

/** Every problem of `config`, each with its path below `builder.config`. */
export function problemsOf(schema: z.ZodObject, config: JsonObject): readonly SettingProblem[] {
  const parsed = schema.safeParse(config)
  if (parsed.success) return []
  const known = Object.keys(schema.shape).join(', ')
  return parsed.error.issues.flatMap(issue => {
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map(key => ({ path: key, message: `unknown setting; known are ${known}` }))
    return [{ path: issue.path.map(String).join('.'), message: issue.message }]
  })
}

/** Throws TASK_INVALID; what passed `problemsOf` never does. */
export function settingsOf<S extends z.ZodObject>(schema: S, config: JsonObject): z.output<S> {
  const parsed = schema.safeParse(config)
  if (parsed.success) return parsed.data
  const problems = problemsOf(schema, config).map(({ path, message }) => `builder.config.${path}: ${message}`)
  throw new RolloutError('TASK_INVALID', problems.join('; '))
}
