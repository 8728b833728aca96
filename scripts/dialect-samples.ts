// What the SDKs' types do not say about a field and a test needs: bodies in which it means something, values that say something. The
// types themselves are read in dialect-fields.ts.

import type { DialectId } from '../src/domain/conversation.js'
import type { Json, JsonObject } from '../src/domain/json.js'

export interface Frame {
  /** Laid over the smallest body: what other fields need to mean something. */
  readonly base: JsonObject
  /** Fields that stand in a turn of the model. */
  readonly isOfModel?: (path: string) => boolean
  /** The list of turns, and what stands around one. */
  readonly turns: {
    readonly name: string
    readonly before: readonly JsonObject[]
    readonly after: readonly JsonObject[]
  }
}

const said = (content: string): JsonObject => ({ role: 'user', content })

/** Bodies around a field, by API. */
export const FRAMES: Readonly<Record<DialectId, Frame>> = {
  anthropic_messages: {
    base: {
      messages: [said('hi')],
      tools: [
        { name: 'f', input_schema: {} },
        { name: 'x', input_schema: {} },
      ],
    },
    turns: { name: 'messages', before: [said('a')], after: [said('b')] },
  },
  openai_chat: {
    base: { messages: [said('hi')], tools: [{ type: 'function', function: { name: 'x' } }] },
    turns: { name: 'messages', before: [said('a')], after: [said('b')] },
  },
  openai_responses: {
    base: { input: [said('hi')], tools: [{ type: 'function', name: 'x' }] },
    turns: { name: 'input', before: [said('a')], after: [said('b')] },
  },
  google_generate: {
    base: {
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
      config: { responseMimeType: 'application/json', tools: [{ functionDeclarations: [{ name: 'x' }] }] },
    },
    isOfModel: path => /\.(functionCall|thought|thoughtSignature|executableCode|codeExecutionResult)\b/.test(path),
    turns: { name: 'contents', before: [{ role: 'user', parts: [{ text: 'a' }] }], after: [] },
  },
}

/** Parts of Gemini content that stand without text. */
export const ALONE = new Set(
  'inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse'.split(
    ' ',
  ),
)

/** Values where the first that a type allows says nothing, by path. */
export const VALUES: Readonly<Record<DialectId, Readonly<Record<string, Json>>>> = {
  anthropic_messages: { output_config: { effort: 'low' }, thinking: { type: 'adaptive' } },
  openai_chat: {
    n: 2,
    stream_options: { include_usage: true },
    tool_choice: 'required',
    response_format: { type: 'json_object' },
  },
  openai_responses: {
    tool_choice: 'required',
    truncation: 'auto',
    top_logprobs: 2,
    include: ['reasoning.encrypted_content'],
    reasoning: { effort: 'low' },
    stream_options: { include_obfuscation: true },
    text: { format: { type: 'json_object' } },
  },
  google_generate: {
    config: { temperature: 1 },
    'contents[].role': 'model',
    'config.tools': [{ functionDeclarations: [{ name: 'y' }] }],
    'config.thinkingConfig': { thinkingBudget: 0 },
    'config.toolConfig': { functionCallingConfig: { mode: 'ANY' } },
    'config.toolConfig.functionCallingConfig': { mode: 'ANY' },
    'contents[].parts': [{ text: 'x' }],
    'config.candidateCount': 2,
    'config.responseMimeType': 'application/json',
    'config.thinkingConfig.thinkingBudget': 0,
    'config.toolConfig.functionCallingConfig.mode': 'ANY',
  },
}

/** Fields without which an object means nothing, though its type does not say so; by the name of the alternative or the type. */
export const NEEDED: Readonly<Record<string, JsonObject>> = {
  system: { content: 'x' },
  function_call_output: { call_id: 'c1' },
  local_shell_call: { id: 'c1' },
  reasoning: { summary: [{ type: 'summary_text', text: 'y' }] },
  FunctionDeclaration: { name: 'f' },
  FunctionCall: { name: 'f' },
  FunctionResponse: { name: 'f' },
  Part: { text: 'x' },
  FunctionResponsePart: { inlineData: { mimeType: 'image/png', data: 'x' } },
  FunctionResponseBlob: { mimeType: 'image/png', data: 'x' },
  FunctionResponseFileData: { mimeType: 'image/png', fileUri: 'http://host/x.png' },
  Blob_2: { mimeType: 'image/png', data: 'x' },
  FileData: { mimeType: 'image/png', fileUri: 'http://host/x.png' },
}
