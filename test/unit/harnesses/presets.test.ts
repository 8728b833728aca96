import { parse } from 'smol-toml'
import t from 'tap'
import type { AgentSpec } from '../../../src/domain/task.js'
import type { HarnessInput, HarnessPreset, HarnessRun } from '../../../src/harnesses/base.js'
import { harnesses } from '../../../src/harnesses/registry.js'
import { golden } from '../../support/golden.js'
import { agentSpec } from '../../support/specs.js'

const presets: readonly HarnessPreset[] = Object.values(harnesses)
const clis = presets.filter(preset => preset.install !== null)

const inputOf = (preset: HarnessPreset, fields: Partial<HarnessInput> = {}): HarnessInput => ({
  instruction: 'Create hello.txt\nScenario: fix "it" $HOME',
  instructionFile: '/s/instruction.txt',
  gatewayUrl: 'http://127.0.0.1:8801',
  sessionKey: 'sk-key',
  model: preset.defaultModel,
  agent: agentSpec({ harness: preset.id, custom_shell: preset.id === 'shell' ? { command: 'make' } : null }),
  homeDir: '/s/home',
  workspaceDir: '/s/workspace',
  logsDir: '/s/logs/agent',
  contextWindow: null,
  installDir: preset.install === null ? null : `/cache/harnesses/${preset.id}@${preset.version}`,
  ...fields,
})

/** As a person reads it: files by their lines. */
const readable = (run: HarnessRun): string =>
  `${JSON.stringify({ ...run, files: run.files.map(file => ({ ...file, content: file.content.split('\n') })) }, null, 2)}\n`

const SERVERS: AgentSpec['mcp_servers'] = [
  { name: 'files', transport: 'stdio', command: 'mcp-files', args: ['--root', '.'] },
  { name: 'search', transport: 'streamable-http', url: 'http://127.0.0.1:9/mcp' },
]

/** Settings that use every key a preset has. */
const RICH: Readonly<Record<string, Partial<AgentSpec>>> = {
  shell: { settings: { sampling_seed: 1 }, custom_shell: { command: 'make all', cwd: 'sub', env: { A: 'b' } } },
  pi: {
    model_name: 'acme/model-x',
    skills_path: '/skills',
    settings: {
      thinking: 'high',
      api_type: 'anthropic-messages',
      context_window: 9_000,
      max_tokens: 100,
      compat: { supportsStore: true },
    },
  },
  qwen_code: { mcp_servers: SERVERS, skills_path: '/skills', settings: { max_session_turns: 5, version: '0.24.4' } },
  codex: {
    model_name: 'openai/gpt-5.5',
    mcp_servers: SERVERS,
    skills_path: '/skills',
    settings: {
      model_reasoning_effort: 'high',
      model_reasoning_summary: 'auto',
      model_auto_compact_token_limit: 9_000,
    },
  },
  claude_code: {
    mcp_servers: SERVERS,
    skills_path: '/skills',
    settings: {
      max_turns: 5,
      reasoning_effort: 'high',
      max_budget_usd: 1.5,
      fallback_model: 'other',
      append_system_prompt: 'Be "brief".',
      allowed_tools: ['Bash(git *)', 'Edit'],
      disallowed_tools: ['WebSearch'],
      max_thinking_tokens: 0,
      max_output_tokens: 4_000,
    },
  },
  gemini_cli: { mcp_servers: SERVERS, skills_path: '/skills', settings: { sandbox: false } },
  opencode: {
    model_name: 'acme/model-x',
    mcp_servers: SERVERS,
    skills_path: '/skills',
    settings: { max_tokens: 100, variant: 'high' },
  },
}

for (const preset of presets) {
  t.test(`${preset.id}: files, environment and commands are the committed ones`, t => {
    golden(t, `harnesses/${preset.id}.json`, readable(preset.prepare(inputOf(preset))))
    const agent = agentSpec({ harness: preset.id, ...RICH[preset.id] })
    t.strictSame(preset.check(agent), [])
    const rich = inputOf(preset, { agent, model: agent.model_name ?? preset.defaultModel, contextWindow: 40_000 })
    golden(t, `harnesses/${preset.id}.rich.json`, readable(preset.prepare(rich)))
    t.end()
  })

  t.test(
    `${preset.id}: nothing is written into the workspace, and no file or argument of the defaults holds the key`,
    t => {
      const run = preset.prepare(inputOf(preset))
      for (const file of run.files) t.match(file.path, /^\/s\/home\//)
      const text = JSON.stringify([run.files, run.steps.map(step => step.command)])
      t.notMatch(text, /sk-key/)
      t.end()
    },
  )

  t.test(`${preset.id}: unknown settings and wrong values are refused with their path`, t => {
    const agent = agentSpec({
      ...RICH[preset.id],
      settings: { no_such_setting: 1, sampling_seed: -1 },
      custom_shell: { command: 'x' },
    })
    const paths = preset.check(agent).map(problem => problem.path)
    t.strictSame([...paths].sort(), ['settings.no_such_setting', 'settings.sampling_seed'])
    t.end()
  })
}

for (const preset of clis) {
  t.test(`${preset.id}: the instruction goes by standard input, whatever its length`, t => {
    const instruction = 'long '.repeat(50_000)
    const { steps } = preset.prepare(inputOf(preset, { instruction }))
    t.equal(steps[0]?.stdin, instruction)
    for (const step of steps) t.ok(JSON.stringify(step.command).length < 2_000)
    t.end()
  })

  t.test(`${preset.id}: an exact version may be asked for, anything else npm understands may not`, t => {
    const problems = (version: string) => preset.check(agentSpec({ settings: { version } }))
    t.strictSame([problems(''), problems('1.2.3'), problems('1.2.3-beta.1')], [[], [], []])
    for (const version of ['latest', '^1.0.0', 'npm:evil@1.0.0', 'file:/x', '1.2.3 || 2']) {
      t.match(problems(version), [{ path: 'settings.version' }], version)
    }
    t.end()
  })
}

t.test("codex's config keeps its top-level keys at the top, whatever the tables", t => {
  const agent = agentSpec({ mcp_servers: SERVERS })
  const [file] = harnesses.codex.prepare(inputOf(harnesses.codex, { agent, contextWindow: 40_000 })).files
  const content = file?.content ?? ''
  const firstTable = content.indexOf('\n[')
  for (const key of ['model', 'model_provider', 'model_context_window', 'check_for_update_on_startup']) {
    t.ok(content.search(new RegExp(`^${key} = `, 'm')) < firstTable, key)
  }
  t.match(parse(content), {
    model: 'sextant-policy',
    model_provider: 'sextant',
    model_providers: { sextant: { base_url: 'http://127.0.0.1:8801/v1', wire_api: 'responses' } },
    mcp_servers: { files: { command: 'mcp-files' }, search: { url: 'http://127.0.0.1:9/mcp' } },
  })
  t.end()
})

t.test('what a harness cannot do is refused, not ignored', t => {
  t.match(harnesses.pi.check(agentSpec({ mcp_servers: SERVERS })), [{ path: 'mcp_servers' }])
  t.match(harnesses.pi.check(agentSpec({ model_name: 'no-slash' })), [{ path: 'model_name' }])
  const sse: AgentSpec['mcp_servers'] = [{ name: 'x', transport: 'sse', url: 'http://127.0.0.1:9' }]
  t.match(harnesses.codex.check(agentSpec({ mcp_servers: sse })), [{ path: 'mcp_servers[0].transport' }])
  t.match(harnesses.gemini_cli.check(agentSpec({ settings: { sandbox: true } })), [{ path: 'settings.sandbox' }])
  t.end()
})

const line = (value: unknown): string => `${JSON.stringify(value)}\n`
const verdict = (preset: HarnessPreset, returnCode: number, stdout: string, stderr = '') =>
  preset.judge?.({ returnCode, stdout, stderr }) ?? null

t.test('claude_code: is_error in the last line is a failure whatever the exit code', t => {
  const result = (is_error: boolean) => line({ type: 'result', subtype: 'success', is_error, result: 'API Error: 400' })
  t.equal(verdict(harnesses.claude_code, 0, result(false)), null)
  t.equal(verdict(harnesses.claude_code, 0, result(true)), 'claude_code: API Error: 400')
  t.match(verdict(harnesses.claude_code, 1, 'no json', 'crashed'), /exited with 1: crashed/)
  t.end()
})

t.test('pi: an error in JSON mode is a failure though it exits 0, also from a cut tail', t => {
  const end = (message: object) => line({ type: 'turn_end', message: { role: 'assistant', ...message } })
  t.equal(verdict(harnesses.pi, 0, end({ stopReason: 'stop' })), null)
  t.equal(verdict(harnesses.pi, 0, end({ stopReason: 'error', errorMessage: '400 "bad"' })), 'pi: 400 "bad"')
  t.equal(verdict(harnesses.pi, 0, `{"a":"cut...","stopReason":"stop"}],"willRetry":false}\n`), null)
  const quoted = end({ stopReason: 'stop' }) + line({ type: 'x', text: '"stopReason":"error"' })
  t.equal(verdict(harnesses.pi, 0, quoted), null, 'quoted text is no event')
  t.equal(verdict(harnesses.pi, 0, ''), 'pi ended without an answer')
  t.match(verdict(harnesses.pi, 2, ''), /exited with 2/)
  t.end()
})

t.test('opencode: exit code 1 after a compaction that went on is fine, an error at the end is not', t => {
  const error = line({ type: 'error', error: { name: 'APIError', data: { message: 'prompt too long' } } })
  const stop = line({ type: 'step_finish', part: { reason: 'stop' } })
  t.equal(verdict(harnesses.opencode, 1, error + stop), null)
  t.equal(verdict(harnesses.opencode, 1, stop + error), 'opencode: prompt too long')
  t.equal(verdict(harnesses.opencode, 0, stop), null)
  t.match(verdict(harnesses.opencode, 1, stop), /exited with 1/)
  t.end()
})

t.test('codex, qwen_code and gemini_cli: the error text comes from their events', t => {
  const failed = line({ type: 'turn.failed', error: { message: 'ran out of room' } })
  t.equal(verdict(harnesses.codex, 1, failed), 'codex: ran out of room')
  t.equal(verdict(harnesses.codex, 0, line({ type: 'turn.completed' })), null)
  const qwen = line({ type: 'result', is_error: true, error: { message: 'context too large' } })
  t.equal(verdict(harnesses.qwen_code, 1, qwen), 'qwen_code: context too large')
  const gemini = line({ type: 'result', status: 'error', error: { message: 'quota' } })
  t.equal(verdict(harnesses.gemini_cli, 173, gemini), 'gemini_cli: quota')
  t.match(verdict(harnesses.gemini_cli, 144, '', 'why'), /exited with 144: why/)
  t.end()
})
