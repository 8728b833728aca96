// An inference server that does not do what it says: a proxy in front of the simulation that alters requests or answers on the way,
// and samplers that draw in one way and report another. Each lie is one that real engines, flags or routers tell.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JsonObject } from '../../src/domain/json.js'
import { applySettings, drawFrom, type Sampler, type SamplingSettings } from '../../src/simulation/distribution.js'
import type { Simulation } from '../../src/simulation/server.js'

/** JSON that a lie edits in place. */
export interface Body {
  [key: string]: unknown
}

export interface Lie {
  /** Edits a request in place; a returned answer is sent instead of asking the server. */
  request?(body: Body, path: string): { readonly status: number; readonly body: unknown } | undefined
  /** Edits a whole answer or one chunk of a stream in place. */
  answer?(body: Body, about: { readonly path: string; readonly isChunk: boolean; readonly request: Body }): void
}

/** URL of the liar in front of `simulation`. */
export async function liar(
  t: { teardown(run: () => unknown): unknown },
  simulation: Pick<Simulation, 'url'>,
  lie: Lie,
): Promise<string> {
  const server = createServer((request, response) => {
    void pass(simulation.url, lie, request, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function pass(url: string, lie: Lie, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url ?? '/'
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  const body: Body = text === '' ? {} : JSON.parse(text)
  const instead = lie.request?.(body, path)
  if (instead !== undefined) return send(response, instead.status, JSON.stringify(instead.body))
  const answer = await fetch(url + path, {
    method: request.method ?? 'GET',
    headers: { 'content-type': 'application/json' },
    ...(request.method === 'POST' && { body: JSON.stringify(body) }),
  })
  const given = await answer.text()
  const edited = (json: string, isChunk: boolean): string => {
    const parsed: Body = JSON.parse(json)
    if (answer.ok) lie.answer?.(parsed, { path, isChunk, request: body })
    return JSON.stringify(parsed)
  }
  const type = answer.headers.get('content-type') ?? ''
  if (!type.includes('event-stream')) return send(response, answer.status, given === '' ? '' : edited(given, false))
  const events = given.split('\n\n').filter(event => event !== '')
  const told = events.map(event => (event.endsWith('[DONE]') ? event : `data: ${edited(event.slice(6), true)}`))
  send(response, 200, `${told.join('\n\n')}\n\n`, type)
}

function send(response: ServerResponse, status: number, text: string, type = 'application/json'): void {
  response.writeHead(status, { 'content-type': type })
  response.end(text)
}

/** Draws with `changes`, whatever was asked for, and reports the uncut distribution as if it had not. */
export const silently =
  (changes: Partial<SamplingSettings>): Sampler =>
  (raw, settings, counts, random) => {
    const { id } = drawFrom(applySettings(raw, { ...settings, ...changes }, counts), random)
    const probability = raw.find(candidate => candidate.id === id)?.probability ?? 0
    return { id, logprob: Math.log(probability), reported: raw }
  }

const choices = (body: Body): readonly Body[] => (Array.isArray(body['choices']) ? (body['choices'] as Body[]) : [])
const contentOf = (choice: Body): Body[] => {
  const logprobs = choice['logprobs'] as { content?: Body[] } | null
  return logprobs?.content ?? []
}
const cutLast = (choice: Body): void => {
  const ids = choice['token_ids']
  if (Array.isArray(ids)) ids.pop()
  contentOf(choice).pop()
}
const usageOf = (body: Body): Record<string, number> => (body['usage'] ?? {}) as Record<string, number>
const isGeneration = (path: string): boolean => path.endsWith('/chat/completions')

export const LIES = {
  idsMissing: {
    answer: body => {
      delete body['prompt_token_ids']
      for (const choice of choices(body)) delete choice['token_ids']
    },
  },
  idsMissingInStreams: {
    answer: (body, { isChunk }) => {
      if (isChunk) for (const choice of choices(body)) delete choice['token_ids']
    },
  },
  idsNotUsage: {
    answer: body => {
      const usage = usageOf(body)
      if (usage['completion_tokens'] !== undefined) usage['completion_tokens'] += 3
    },
  },
  idsNotLogprobs: {
    answer: body => {
      for (const choice of choices(body))
        if (Array.isArray(choice['token_ids'])) choice['token_ids'] = choice['token_ids'].map(id => Number(id) + 1)
    },
  },
  stopIdLeftOut: {
    answer: (body, { isChunk }) => {
      for (const choice of choices(body)) {
        if (isChunk || choice['finish_reason'] === 'length') continue
        cutLast(choice)
        const usage = usageOf(body)
        if (usage['completion_tokens'] !== undefined) usage['completion_tokens'] -= 1
      }
    },
  },
  stopIdLeftOutButCounted: {
    answer: (body, { isChunk }) => {
      for (const choice of choices(body)) if (!isChunk && choice['finish_reason'] !== 'length') cutLast(choice)
    },
  },
  noToolParser: {
    answer: body => {
      for (const choice of choices(body)) {
        const message = choice['message'] as Body | undefined
        const calls = message?.['tool_calls'] as { function: JsonObject }[] | undefined
        if (message === undefined || calls === undefined) continue
        const text = calls.map(call => `<tool_call>\n${JSON.stringify(call.function)}\n</tool_call>`).join('\n')
        message['content'] = `${String(message['content'] ?? '')}\n${text}`
        delete message['tool_calls']
        choice['finish_reason'] = 'stop'
      }
    },
  },
  toolsRefused: {
    request: body =>
      Array.isArray(body['tools'])
        ? {
            status: 400,
            body: {
              error: {
                message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
                type: 'BadRequestError',
                code: 400,
              },
            },
          }
        : undefined,
  },
  thinkingInText: {
    answer: body => {
      for (const choice of choices(body)) {
        const message = choice['message'] as Body | undefined
        if (typeof message?.['reasoning'] !== 'string') continue
        message['content'] = `<think>${message['reasoning']}</think>${String(message['content'] ?? '')}`
        message['reasoning'] = null
      }
    },
  },
  contextCut: {
    request: (body, path) => {
      if (!isGeneration(path)) return undefined
      for (const message of body['messages'] as Body[]) {
        const { content } = message
        if (typeof content === 'string' && content.length > 4_000) message['content'] = content.slice(-2_000)
      }
      return undefined
    },
  },
  contextErrorOfItsOwn: {
    request: (body, path) =>
      isGeneration(path) && JSON.stringify(body).length > 50_000
        ? { status: 500, body: { error: 'Internal server error' } }
        : undefined,
  },
  unknownLogprobs: {
    answer: body => {
      for (const choice of choices(body)) {
        contentOf(choice).forEach((entry, index) => {
          if (index % 5 === 4) entry['logprob'] = -9999
        })
      }
    },
  },
  /** What vLLM does by default with a model that brings a generation_config.json; it lies about nothing. */
  ownDefaults: {
    request: (body, path) => {
      if (isGeneration(path) && body['temperature'] === undefined) Object.assign(body, { temperature: 0.4, top_k: 2 })
      return undefined
    },
  },
  /** A router that sets sampling of its own on what is sent on. */
  topKByRouter: {
    request: (body, path) => {
      if (isGeneration(path)) body['top_k'] = 20
      return undefined
    },
  },
  unknownFieldsRefused: {
    request: body =>
      'sextant_unknown_field' in body
        ? { status: 400, body: { object: 'error', message: 'extra fields not permitted', code: 400 } }
        : undefined,
  },
  noTokenizer: {
    request: (_body, path) => (path === '/tokenize' ? { status: 404, body: { detail: 'Not Found' } } : undefined),
  },
} as const satisfies Readonly<Record<string, Lie>>
