// A sealed session as the build reads it, whichever way its calls were kept: prompts as paths of one token tree, messages on demand.
// Nothing that calls share is put together here.

import type {
  CompletionRecord,
  Delivered,
  LedgerCall,
  LoggedRecord,
  SessionLedger,
  SharedLists,
} from '../domain/completion.js'
import { isObject, type Json, type JsonObject } from '../domain/json.js'
import { itemsOfList } from './list-tree.js'
import { idsOf, pathOf, store, type TokenPath, tokenTree } from './token-tree.js'

/** Messages of a request. */
export interface MessageView {
  readonly count: number
  /** Those from index `start` on. O(how many they are). */
  from(start: number): readonly JsonObject[]
}

/** A call of a ledger. */
export interface Seen {
  readonly record: LoggedRecord
  readonly delivered: Delivered
  /** null where the engine told no prompt ids. All paths are of one tree. */
  readonly prompt: TokenPath | null
  readonly messages: MessageView
  readonly tools: readonly JsonObject[] | null
}

/** The calls of `ledger`, in its order. O(tokens that are not shared yet). */
export function viewLedger({ calls, shared }: SessionLedger): readonly Seen[] {
  const tree = tokenTree(shared?.segments)
  const lists = shared && listView(shared.lists)
  return calls.map((call): Seen => {
    const { record, delivered } = call
    if ('prompt' in call) {
      const { rest, messages, tools } = call.request
      return {
        record,
        delivered,
        prompt: call.prompt && pathOf(tree, call.prompt),
        messages: lists && messages !== null ? lists(messages) : arrayView(objects(rest['messages'])),
        tools: lists && tools !== null ? orNull(lists(tools).from(0)) : listOrNull(rest['tools']),
      }
    }
    const { promptIds, request } = call.record
    return {
      record,
      delivered,
      prompt: promptIds && pathOf(tree, store(tree, promptIds)),
      messages: arrayView(objects(request['messages'])),
      tools: listOrNull(request['tools']),
    }
  })
}

/** One call's record with its whole prompt and request. Builds them anew where they are shared. */
export function wholeRecord({ shared }: Pick<SessionLedger, 'shared'>, call: LedgerCall): CompletionRecord {
  if (!('prompt' in call)) return call.record
  const { record, prompt, request } = call
  const { rest, messages, tools } = request
  return {
    ...record,
    promptIds: prompt && idsOf(pathOf({ segments: shared?.segments ?? [] }, prompt)),
    request: {
      ...rest,
      ...(shared && messages !== null && { messages: itemsOfList(shared.lists, messages) }),
      ...(shared && tools !== null && { tools: itemsOfList(shared.lists, tools) }),
    },
  }
}

const arrayView = (messages: readonly JsonObject[]): MessageView => ({
  count: messages.length,
  from: start => messages.slice(start),
})

function listView({ parents, last, contents }: SharedLists): (list: number) => MessageView {
  const counts = new Int32Array(parents.length)
  for (let list = 1; list < counts.length; list++) counts[list] = (counts[parents[list] ?? 0] ?? 0) + 1
  return list => ({
    count: counts[list] ?? 0,
    from(start) {
      const messages: JsonObject[] = []
      for (let at = list; at > 0 && (counts[at] ?? 0) > start; at = parents[at] ?? 0) {
        const content = contents[last[at] ?? -1]
        if (content) messages.push(content)
      }
      return messages.reverse()
    },
  })
}

const objects = (value: Json | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter((item): item is JsonObject => isObject(item)) : []

const orNull = (list: readonly JsonObject[]): readonly JsonObject[] | null => (list.length > 0 ? list : null)

const listOrNull = (value: Json | undefined): readonly JsonObject[] | null => orNull(objects(value))
