// Canonical request -> body of Chat Completions as inference servers take it. The same history always gives the same bytes: a
// later prompt must repeat an earlier one. Profiles add their capture fields.

import type { SamplingInForce } from '../../domain/completion.js'
import type { CanonicalMessage, CanonicalRequest, ContentPart, Loss, ToolChoice } from '../../domain/conversation.js'
import type { Json, JsonObject } from '../../domain/json.js'
import type { UpstreamRequestOptions } from '../base.js'
import { parseJson } from './read.js'

export interface ChatRequestRules {
  /** Names under which an assistant turn carries its reasoning. */
  readonly reasoningKeys: readonly ('reasoning' | 'reasoning_content')[]
  /** The engine parses arguments of the history and refuses what is no JSON: such a call is rendered with `{}`. */
  readonly parsesArguments: boolean
}

/** The parts of the body that are the prompt: messages, tools and what the template reads. */
export function promptFields(request: CanonicalRequest, rules: ChatRequestRules): { body: JsonObject; losses: Loss[] } {
  const losses: Loss[] = []
  const messages = mergeLeadingSystem(request.messages).map((message, index) =>
    chatMessage(message, index, rules, losses),
  )
  const tools = request.tools.map(({ name, description, parameters, strict }) => ({
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      ...(parameters !== undefined && { parameters }),
      ...(strict !== undefined && { strict }),
    },
  }))
  return {
    body: {
      messages,
      ...(tools.length > 0 && { tools }),
      ...(request.enableThinking !== undefined && {
        chat_template_kwargs: { enable_thinking: request.enableThinking },
      }),
      ...effortField(request.reasoningEffort),
    },
    losses,
  }
}

/** Fields that steer decoding but not the prompt. `extended` adds what is not in OpenAI's own API. */
export function decodingFields(
  request: CanonicalRequest,
  options: UpstreamRequestOptions,
  extended: boolean,
): JsonObject {
  const { sampling } = options
  const hasTools = request.tools.length > 0
  return {
    ...(hasTools && request.toolChoice && { tool_choice: toolChoice(request.toolChoice) }),
    ...(hasTools && request.parallelToolCalls !== undefined && { parallel_tool_calls: request.parallelToolCalls }),
    ...(request.responseFormat && { response_format: request.responseFormat }),
    ...(options.stop.length > 0 && { stop: options.stop }),
    ...samplingFields(sampling, extended),
  }
}

function samplingFields(sampling: SamplingInForce, extended: boolean): JsonObject {
  return {
    ...(sampling.temperature !== null && { temperature: sampling.temperature }),
    ...(sampling.topP !== null && { top_p: sampling.topP }),
    ...(sampling.presencePenalty !== null && { presence_penalty: sampling.presencePenalty }),
    ...(sampling.frequencyPenalty !== null && { frequency_penalty: sampling.frequencyPenalty }),
    ...(sampling.maxTokens !== null && { max_tokens: sampling.maxTokens }),
    ...(sampling.seed !== null && { seed: sampling.seed }),
    ...(extended && {
      ...(sampling.topK !== null && { top_k: sampling.topK }),
      ...(sampling.minP !== null && { min_p: sampling.minP }),
      // A model's own generation config may set one (Qwen2.5: 1.05), and then raw logprobs are not the policy's.
      repetition_penalty: 1,
    }),
  }
}

const toolChoice = (choice: ToolChoice): Json =>
  choice.type === 'function' ? { type: 'function', function: { name: choice.name } } : choice.type

/** Engines know three words and refuse others. */
function effortField(effort: string | undefined): JsonObject {
  if (effort === 'low' || effort === 'medium' || effort === 'high') return { reasoning_effort: effort }
  if (effort === 'minimal') return { reasoning_effort: 'low' }
  if (effort === 'xhigh' || effort === 'max') return { reasoning_effort: 'high' }
  return {}
}

/** Only system messages at the very start become one: later ones keep their place. */
function mergeLeadingSystem(messages: readonly CanonicalMessage[]): readonly CanonicalMessage[] {
  const first = messages.findIndex(message => message.role !== 'system')
  const leading = first === -1 ? messages : messages.slice(0, first)
  if (leading.length < 2) return messages
  const content = leading.map(message => (message.role === 'system' ? message.content : '')).join('\n\n')
  return [{ role: 'system', content }, ...messages.slice(leading.length)]
}

function chatMessage(message: CanonicalMessage, index: number, rules: ChatRequestRules, losses: Loss[]): JsonObject {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.content }
    case 'user':
      return { role: 'user', content: chatContent(message.content) }
    case 'tool':
      return { role: 'tool', tool_call_id: message.toolCallId, content: chatContent(message.content) }
    case 'assistant': {
      const calls = message.toolCalls ?? []
      return {
        role: 'assistant',
        content: message.content,
        ...(message.reasoning !== undefined &&
          Object.fromEntries(rules.reasoningKeys.map(key => [key, message.reasoning]))),
        ...(calls.length > 0 && {
          tool_calls: calls.map((call, position) => ({
            id: call.id,
            type: 'function',
            function: {
              name: call.name,
              arguments: historyArguments(
                call.arguments,
                `messages[${index}].tool_calls[${position}].function.arguments`,
                rules,
                losses,
              ),
            },
          })),
        }),
      }
    }
  }
}

function historyArguments(text: string, path: string, rules: ChatRequestRules, losses: Loss[]): string {
  if (!rules.parsesArguments || text === '' || parseJson(text) !== undefined) return text
  losses.push({ path, reason: 'malformed arguments: the engine refuses them, the call is rendered with {}' })
  return '{}'
}

/** Text parts alone become one text, joined by a line feed as engines do it: the prompt does not depend on the template's taste. */
function chatContent(content: string | readonly ContentPart[]): Json {
  if (typeof content === 'string') return content
  if (content.every(part => part.type === 'text')) return content.map(part => part.text).join('\n')
  return content.map(part =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'image_url', image_url: { url: part.url, ...(part.detail !== undefined && { detail: part.detail }) } },
  )
}
