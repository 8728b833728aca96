// One session's result by itself, in the form that the client accepts, and what points to it (docs/result-format.md).

import type { FastifyInstance, FastifyReply } from 'fastify'
import type { JsonObject } from '../domain/json.js'
import { acceptedType } from '../http/accept.js'
import { fail } from './answers.js'
import type { ControlOptions } from './ports.js'
import { RESULT_MEDIA_TYPE } from './result-binary.js'
import { type ReferredResult, referenceJson } from './stored-result.js'
import type { EncodeReference } from './task-json.js'

const JSON_MEDIA_TYPE = 'application/json'
/** Best first: JSON where the client says nothing. */
const FORMS = [JSON_MEDIA_TYPE, RESULT_MEDIA_TYPE]

export function addResultRoutes(
  server: FastifyInstance,
  options: ControlOptions,
  /** null = refused, and answered. */
  parseQuery: (query: unknown, reply: FastifyReply) => { readonly generation: number | null } | null,
): void {
  const { ports, encode, encodeBinary } = options
  server.get<{ Params: { task_id: string; session_id: string } }>(
    '/rollout/task/:task_id/sessions/:session_id',
    async (request, reply) => {
      const { task_id: taskId, session_id: sessionId } = request.params
      const query = parseQuery(request.query, reply)
      if (query === null) return reply
      reply.header('vary', 'accept')
      const form = acceptedType(request.headers.accept, FORMS)
      if (form === null) return fail(reply, 406, `a result is served as ${FORMS.join(' or ')}`)
      const task = await ports.task(taskId, query.generation)
      const result = task?.results.find(one => one.sessionId === sessionId)
      if (result === undefined) {
        const session = task?.sessions.find(one => one.sessionId === sessionId)
        const named = JSON.stringify(sessionId.slice(0, 128))
        return fail(
          reply,
          404,
          session
            ? `session ${named} has no result yet: ${session.status}`
            : `task ${JSON.stringify(taskId.slice(0, 128))} has no session ${named}`,
        )
      }
      if (form === JSON_MEDIA_TYPE) return reply.type(`${JSON_MEDIA_TYPE}; charset=utf-8`).send(encode(result))
      const bytes = await encodeBinary(result)
      return reply.type(RESULT_MEDIA_TYPE).send(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    },
  )
}

/** References whose URL begins with `baseUrl()`; null = the address is not known, then `url` is null. */
export const referencesAt =
  (baseUrl: () => string | null): EncodeReference =>
  (result, generation) =>
    referenceJson(result, of => resultRef(of, generation, baseUrl()))

function resultRef(
  { taskId, sessionId, traces, trainerTokens, trainedTokens }: ReferredResult,
  generation: number,
  base: string | null,
): JsonObject {
  const path = `/rollout/task/${encodeURIComponent(taskId)}/sessions/${encodeURIComponent(sessionId)}?generation=${generation}`
  return {
    url: base === null ? null : `${base}${path}`,
    path,
    media_types: FORMS,
    traces,
    trainer_tokens: trainerTokens,
    trained_tokens: trainedTokens,
  }
}
