// One JSON line per event: `time level event` and the fields of the event, on stderr by default. Structurally the `Logger` of
// actors/system/behavior.ts. Never give it prompts, completions, keys or environment values.

import pino from 'pino'
import { errorData } from '../domain/errors.js'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'
type Fields = Readonly<Record<string, unknown>>

export interface EventLogger {
  debug(event: string, fields?: Fields): void
  info(event: string, fields?: Fields): void
  warn(event: string, fields?: Fields): void
  error(event: string, fields?: Fields): void
  /** Same destination and level; `fields` are on each line. */
  child(fields: Fields): EventLogger
}

export interface LoggerOptions {
  readonly level: LogLevel
  /** On each line, e.g. `{ system: 'proxy-1' }`. */
  readonly fields?: Fields
  /** Receives whole lines, line feed included. Default: file descriptor 2, written synchronously (a dying thread loses no line). */
  readonly destination?: { write(line: string): unknown }
}

/** A field named `cause` or `error` may hold any thrown value: it is written as `{ code, message, details }`. */
export function createLogger({ level, fields = {}, destination }: LoggerOptions): EventLogger {
  const lines = pino(
    {
      level,
      base: fields,
      messageKey: 'event',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      serializers: { cause: errorData, error: errorData },
    },
    destination ?? pino.destination({ fd: 2, sync: true }),
  )
  return wrap(lines)
}

const wrap = (lines: pino.Logger): EventLogger => ({
  debug: (event, fields = {}) => lines.debug(fields, event),
  info: (event, fields = {}) => lines.info(fields, event),
  warn: (event, fields = {}) => lines.warn(fields, event),
  error: (event, fields = {}) => lines.error(fields, event),
  child: fields => wrap(lines.child(fields)),
})
