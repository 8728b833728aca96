// Pieces of content that all dialects carry alike: data URLs, markers for what no text model takes, error markers of results.

import type { ContentPart } from '../../domain/conversation.js'

/** Starts the text of a failed tool's result (case anthropic-request-8). */
export const TOOL_ERROR = '[Tool Error]'

/** `text` behind the error marker. */
export const markedError = (text: string): string => (text === '' ? TOOL_ERROR : `${TOOL_ERROR} ${text}`)

export const textPart = (text: string): ContentPart => ({ type: 'text', text })

/** Base64 data as an image part. */
export const dataImage = (mediaType: string, data: string): ContentPart => ({
  type: 'image',
  url: `data:${mediaType};base64,${data}`,
})

/** The line that stands where content was left out, e.g. `[document omitted: application/pdf]`. */
export const omittedPart = (kind: string, detail?: string): ContentPart =>
  textPart(`[${kind} omitted${detail ? `: ${detail}` : ''}]`)
