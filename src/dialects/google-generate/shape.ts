// The fields of a generateContent request that are read, or have no effect on prompt and sampling, in camel case. All others are losses.

import { type Fields, free } from '../shared/unread.js'

const DATA: Fields = { text: 'free', inlineData: free('mimeType data'), fileData: free('mimeType fileUri') }

const PART: Fields = {
  ...DATA,
  // Signatures are ours or mean nothing to the engine.
  ...free('thought thoughtSignature'),
  functionCall: free('id name args'),
  functionResponse: { ...free('id name response'), parts: DATA },
}

const CONTENT: Fields = { role: 'free', parts: PART }

export const GOOGLE_SHAPE: Fields = {
  // The engine has no filters of its own; the path names the model.
  ...free('safetySettings model cachedContent'),
  // Billing, tracing.
  ...free('labels serviceTier sessionId _proxySessionId'),
  contents: CONTENT,
  systemInstruction: CONTENT,
  // Other tools are recorded by the decoder.
  tools: { functionDeclarations: free('name description parameters parametersJsonSchema') },
  toolConfig: { functionCallingConfig: free('mode allowedFunctionNames') },
  generationConfig: {
    ...free('temperature topP topK maxOutputTokens stopSequences candidateCount presencePenalty frequencyPenalty seed'),
    ...free('responseMimeType responseSchema responseJsonSchema'),
    thinkingConfig: free('includeThoughts thinkingBudget thinkingLevel'),
  },
}
