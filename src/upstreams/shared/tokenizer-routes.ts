// What vLLM and SGLang have in common at `/tokenize` and `/detokenize`: the same answers but for the key of the text.

import type { UpstreamProfile } from '../base.js'
import { countOf, idsOf, malformed, textOf } from './read.js'

type TokenizerRoutes = Pick<
  UpstreamProfile,
  'readCount' | 'readTokens' | 'readWindow' | 'detokenizeRequest' | 'readDetokenized'
>

/** `textKey`: where `/detokenize` puts its text. The readers throw UPSTREAM_MALFORMED naming the missing key. */
export const tokenizerRoutes = (textKey: string): TokenizerRoutes => ({
  readCount(body) {
    const count = countOf(body['count'])
    if (count === null) throw malformed('count is missing')
    return count
  },
  readTokens: body => idsOf(body['tokens']),
  readWindow: body => countOf(body['max_model_len']),
  detokenizeRequest: (ids, model) => ({ path: '/detokenize', body: { model, tokens: [...ids] } }),
  readDetokenized(body) {
    const text = textOf(body[textKey])
    if (text === null) throw malformed(`${textKey} is missing`)
    return text
  },
})
