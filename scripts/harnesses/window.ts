// The task's context window, as each CLI was told it: read back from the CLI's own config file, or from what it then asks for.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { isObject } from '../../src/domain/json.js'
import type { CliId } from './scenarios.js'
import type { Exchange } from './wire.js'

/** null = where the CLI keeps its window there is none to set. */
const READERS: Readonly<Record<CliId, ((homeDir: string, call: Exchange) => unknown) | null>> = {
  // No file: it goes in by its environment. It then keeps room for a whole answer, which it asks for.
  claude_code: (_home, call) => {
    const body: unknown = JSON.parse(call.body)
    return isObject(body) && body['max_tokens'] === 32_000 ? WHOLE : body
  },
  codex: home => at(parse(text(home, '.codex/config.toml')), 'model_context_window'),
  // It knows windows by model name alone.
  gemini_cli: null,
  qwen_code: home =>
    at(JSON.parse(text(home, '.qwen/settings.json')), 'model', 'generationConfig', 'contextWindowSize'),
  opencode: home =>
    at(
      JSON.parse(text(home, '.config/opencode/opencode.json')),
      'provider',
      'sextant',
      'models',
      'sextant-policy',
      'limit',
      'context',
    ),
  pi: home =>
    at(JSON.parse(text(home, '.pi/agent/models.json')), 'providers', 'sextant', 'models', '0', 'contextWindow'),
}
const WHOLE = 'whole'

/** Nothing = the CLI knows the window. `call`: its first to the gateway. */
export function windowProblems(harness: CliId, window: number, homeDir: string, call: Exchange): readonly string[] {
  const read = READERS[harness]
  if (read === null) return []
  const found = read(homeDir, call)
  return found === window || found === WHOLE
    ? []
    : [`context window: wanted ${window} in its config, got ${JSON.stringify(found)?.slice(0, 80)}`]
}

const text = (home: string, path: string): string =>
  existsSync(join(home, path)) ? readFileSync(join(home, path), 'utf8') : '{}'

function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (Array.isArray(inner) ? inner[Number(key)] : isObject(inner) ? inner[key] : undefined),
    value,
  )
}
