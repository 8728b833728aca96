// The shell tools of six harness CLIs in Chat Completions form, as their requests reach an engine through the gateway, and a
// harness in miniature that runs what the policy calls.

import { execFile } from 'node:child_process'
import type { JsonObject } from '../../src/domain/json.js'
import { isObject } from '../../src/domain/json.js'

const tool = (
  name: string,
  properties: JsonObject,
  required: readonly string[],
  description = 'Runs a command.',
): JsonObject => ({
  type: 'function',
  function: { name, description, parameters: { type: 'object', properties, required } },
})
const text = { type: 'string' }
const reader = tool('read_file', { path: text }, ['path'], 'Reads a file.')

export const HARNESS_TOOLS: Readonly<Record<string, readonly JsonObject[]>> = {
  claude_code: [
    reader,
    tool(
      'Bash',
      { command: text, timeout: { type: 'number' }, description: text, run_in_background: { type: 'boolean' } },
      ['command'],
    ),
  ],
  codex: [
    tool('exec_command', { cmd: text, workdir: text, yield_time_ms: { type: 'number' }, justification: text }, ['cmd']),
    tool('write_stdin', { session_id: { type: 'number' }, chars: text }, ['session_id']),
  ],
  codex_shell: [tool('shell', { command: { type: 'array', items: text }, workdir: text }, ['command'])],
  codex_code: [tool('exec', { input: text }, ['input'], 'JavaScript.')],
  gemini_cli: [
    tool('list_background_processes', {}, []),
    tool(
      'run_shell_command',
      { command: text, description: text, dir_path: text, is_background: { type: 'boolean' } },
      ['command'],
    ),
  ],
  qwen_code: [
    reader,
    tool('run_shell_command', { command: text, description: text, is_background: { type: 'boolean' } }, [
      'command',
      'is_background',
    ]),
  ],
  opencode: [
    tool('bash', { command: text, timeout: { type: 'number' }, workdir: text, description: text }, [
      'command',
      'description',
    ]),
    reader,
  ],
  pi: [reader, tool('bash', { command: text, timeout: { type: 'number' } }, ['command'])],
  namespaced: [tool('functions__exec_command', { cmd: text }, ['cmd'])],
}

/** The shell command in a call's arguments, as the harness would read it. */
export function commandOf(argumentText: string): string {
  const args: unknown = JSON.parse(argumentText)
  if (!isObject(args)) throw new Error(`wanted an object of arguments: ${argumentText}`)
  const { command = args['cmd'] ?? args['input'] } = args
  if (Array.isArray(command)) return String(command[2])
  const code = /^const result = await tools\.exec_command\(\{cmd: (".*")\}\); text\(result\.output\);$/s.exec(
    String(command),
  )
  return code?.[1] === undefined ? String(command) : JSON.parse(code[1])
}

/** Standard output and error of `command` in `folder`, whatever its exit code. */
export const runCommand = (command: string, folder: string): Promise<string> =>
  new Promise(resolve => {
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CEILING_DIRECTORIES: folder,
    }
    execFile('bash', ['-c', command], { cwd: folder, env }, (_failure, stdout, stderr) => resolve(stdout + stderr))
  })
