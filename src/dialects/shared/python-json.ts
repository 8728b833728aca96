// Writes JSON the way Python's json.dumps(value, ensure_ascii=False) does: `", "` and `": "`, keys in given order, nothing escaped that need
// not be. Chat templates re-render tool arguments with it, so arguments that we must write ourselves (no sampled text known) come out as the
// template would write them (cases anthropic-request-13, -14). Never used on arguments whose raw text is known.

import type { Json, JsonObject } from '../../domain/json.js'

/** `value` as text. Numbers keep JavaScript's value: `1.0` and `1` cannot be told apart after JSON.parse. Absent fields are left out. */
export function pythonJson(value: Json | undefined): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  if (typeof value === 'number') return pythonNumber(value)
  if (Array.isArray(value)) return `[${value.map(item => pythonJson(item)).join(', ')}]`
  const fields = Object.entries(value as JsonObject).filter(([, field]) => field !== undefined)
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}: ${pythonJson(field)}`).join(', ')}}`
}

/** Python turns to exponents below 1e-4 and writes at least two exponent digits; JavaScript below 1e-6 and one. */
function pythonNumber(value: number): string {
  if (!Number.isFinite(value)) return 'null'
  const text = value !== 0 && Math.abs(value) < 1e-4 ? value.toExponential() : String(value)
  return text.replace(/e([+-])(\d)$/, 'e$10$2')
}
