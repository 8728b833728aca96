// Reads the JSON events a CLI prints, one on a line, from a captured tail: the first line may be cut, other lines may be text.

import { isObject } from '../../domain/json.js'

/** Objects of the lines that parse, in order. */
export function jsonLines(text: string): readonly Record<string, unknown>[] {
  return text.split('\n').flatMap(line => {
    if (!line.startsWith('{')) return []
    try {
      const value: unknown = JSON.parse(line)
      return isObject(value) ? [value] : []
    } catch {
      return []
    }
  })
}

/** Text of an error in any of the shapes that CLIs print, at most 500 characters. */
export function errorText(value: unknown): string {
  if (typeof value === 'string') return value.slice(0, 500)
  if (isObject(value)) {
    for (const key of ['message', 'data', 'error']) {
      if (value[key] !== undefined && value[key] !== null) return errorText(value[key])
    }
  }
  return JSON.stringify(value ?? null).slice(0, 500)
}

/** The usual verdict of a CLI whose exit code can be trusted. */
export function exitCodeError(returnCode: number, stderr: string, stdout: string): string | null {
  if (returnCode === 0) return null
  const output = (stderr.trim() || stdout.trim()).slice(-2_000)
  return `the harness exited with ${returnCode}${output && `: ${output}`}`
}
