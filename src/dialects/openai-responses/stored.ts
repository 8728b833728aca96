// How a Responses request goes on from an earlier answer (case responses-request-11): the items of the conversation so far stand before its
// own. As in OpenAI's API, instructions and tools are not carried over, and `store: false` keeps nothing.

import type { JsonObject } from '../../domain/json.js'
import type { StoredConversations } from '../base.js'
import { booleanField, stringField } from '../shared/fields.js'
import { decodeContinued, inputItems } from './decode.js'
import { encodeResponseObject, responseId } from './encode.js'

export const storedResponses: StoredConversations = {
  previousId: body => stringField(body, 'previous_response_id') || null,
  ownItems: body => (booleanField(body, 'store') === false ? null : inputItems(body).map(({ item }) => item)),
  decodeContinued,
  // The output of an answer of ours is a list of items.
  answerItems: (response, request) => ({
    id: responseId(response.id),
    items: encodeResponseObject(response, request)['output'] as readonly JsonObject[],
  }),
}
