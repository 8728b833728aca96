// Which calls are no work of the agent: titles, routers, quota probes, summaries. The preset's own rules first, then the shape of the call.
// Also the name a harness gives its sub-agents.

import type { CanonicalRequest } from '../../src/domain/conversation.js'
import type { SideCallRule } from '../../src/harnesses/base.js'

type Headers = Readonly<Record<string, string | undefined>>

/** A quota probe asks for 1 token, a topic check for a word. */
const TINY_MAX_TOKENS = 16

/** Name of the rule that makes `request` a side call, or null. `mainHasTools`: the session's main thread has shown tools. */
export function sideRuleOf(
  request: CanonicalRequest,
  headers: Headers,
  rules: readonly SideCallRule[],
  mainHasTools: boolean,
): string | null {
  const preset = rules.find(rule => rule.isSubAgent !== true && holds(rule, request, headers))
  if (preset !== undefined) return preset.name
  const { maxTokens } = request.sampling
  if (maxTokens !== undefined && maxTokens <= TINY_MAX_TOKENS) return 'shape:tiny_max_tokens'
  if (mainHasTools && request.tools.length === 0) return 'shape:no_tools'
  return null
}

/** The harness's own name where a header tells it, else the name of the rule that knows it; null = the main agent. */
export const agentIdOf = (request: CanonicalRequest, headers: Headers, rules: readonly SideCallRule[]): string | null =>
  headers['x-claude-code-agent-id'] ||
  headers['x-openai-subagent'] ||
  headers['x-parent-session-id'] ||
  (rules.find(rule => rule.isSubAgent === true && holds(rule, request, headers))?.name ?? null)

/** A rule without conditions matches nothing. */
function holds(rule: SideCallRule, request: CanonicalRequest, headers: Headers): boolean {
  const { maxTokens } = request.sampling
  const conditions = [
    rule.modelGlob === undefined ? null : globMatches(rule.modelGlob, request.model),
    rule.noTools === undefined ? null : rule.noTools === (request.tools.length === 0),
    rule.maxTokensAtMost === undefined ? null : maxTokens !== undefined && maxTokens <= rule.maxTokensAtMost,
    rule.systemIncludes === undefined ? null : systemText(request).includes(rule.systemIncludes),
    rule.systemLacks === undefined ? null : !systemText(request).includes(rule.systemLacks),
    rule.offersTool === undefined ? null : request.tools.some(tool => tool.name === rule.offersTool),
    rule.lastUserIncludes === undefined ? null : lastUserText(request).includes(rule.lastUserIncludes),
    rule.headerIncludes === undefined
      ? null
      : (headers[rule.headerIncludes.name.toLowerCase()] ?? '').includes(rule.headerIncludes.text),
  ].filter(condition => condition !== null)
  return conditions.length > 0 && conditions.every(condition => condition)
}

const systemText = (request: CanonicalRequest): string =>
  request.messages.map(message => (message.role === 'system' ? message.content : '')).join('\n')

function lastUserText({ messages }: CanonicalRequest): string {
  const last = messages.at(-1)
  if (last?.role !== 'user') return ''
  return typeof last.content === 'string'
    ? last.content
    : last.content.map(part => (part.type === 'text' ? part.text : '')).join('\n')
}

/** `*` any characters, slashes too (model names have them); `?` one. */
export function globMatches(glob: string, text: string): boolean {
  const pattern = glob
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.')
  return new RegExp(`^${pattern}$`, 's').test(text)
}
