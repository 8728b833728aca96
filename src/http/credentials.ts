// The key of an inference server: a header on each request to it, and nowhere else. Engines may quote a key that they refuse, so what they
// say is cleaned before it is kept, logged or told.

/** Header fields of a request to an upstream. */
export const authorization = (apiKey: string | null | undefined): Readonly<Record<string, string>> =>
  apiKey ? { authorization: `Bearer ${apiKey}` } : {}

/** `text` with the key replaced by stars. */
export const withoutKey = (text: string, apiKey: string | null | undefined): string =>
  apiKey ? text.replaceAll(apiKey, '********') : text
