// Records of captured calls for tests: valid ones, with what a test cares about replaced.

import type { CompletionRecord, FailedCall } from '../../src/domain/completion.js'
import type { CompletionId, SessionId } from '../../src/domain/ids.js'

/** A call with prompt [1, 2, 3] and answer [10, 11, 99]. */
export const completionRecord = (changes: Partial<CompletionRecord> = {}): CompletionRecord => ({
  completionId: 'msg_000000000001' as CompletionId,
  sessionId: 's-1' as SessionId,
  sequence: 0,
  attempt: 0,
  dialect: 'openai_chat',
  modelRequested: 'm',
  modelUsed: 'served',
  upstream: 'main',
  promptIds: Int32Array.of(1, 2, 3),
  sampledIds: Int32Array.of(10, 11, 99),
  logprobs: Float32Array.of(-0.5, -1, -0.25),
  completionTokens: 3,
  promptTokens: 3,
  cachedTokens: 0,
  finish: 'stop',
  engineFinish: 'stop',
  notTrainable: null,
  sampling: {
    temperature: 1,
    topP: 1,
    topK: -1,
    minP: 0,
    presencePenalty: 0,
    frequencyPenalty: 0,
    maxTokens: null,
    seed: null,
  },
  generationPromptLength: 0,
  endTokenId: 99,
  policyVersionStart: null,
  policyVersionEnd: null,
  replica: 'http://127.0.0.1:1',
  retryCount: 0,
  sideRule: null,
  agentId: null,
  startedAtMs: 1_000,
  finishedAtMs: 2_000,
  firstTokenAtMs: null,
  request: { messages: [{ role: 'user', content: 'hi' }] },
  response: { choices: [] },
  originalRequest: '{}',
  losses: [],
  rulesApplied: [],
  ...changes,
})

export const failedCall = (changes: Partial<FailedCall> = {}): FailedCall => ({
  sessionId: 's-1' as SessionId,
  sequence: 0,
  attempt: 0,
  status: 500,
  error: 'CUDA out of memory',
  abortedTokens: 0,
  startedAtMs: 1_000,
  finishedAtMs: 2_000,
  ...changes,
})
