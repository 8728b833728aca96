// Answers of the control API other than success (W-5): `{"detail": ...}`.

import type { FastifyReply } from 'fastify'
import type { Problem } from '../config/problems.js'
import { ERROR_CODES, type ErrorData } from '../domain/errors.js'
import { detailOf } from './parse-task.js'

export const fail = (reply: FastifyReply, status: number, detail: unknown): FastifyReply =>
  reply.code(status).send({ detail })

/** An error of ours as an answer: its status, `Retry-After` where trying again helps. */
export function refuse(reply: FastifyReply, error: ErrorData): FastifyReply {
  const { status } = ERROR_CODES[error.code]
  if (ERROR_CODES[error.code].retryable && (status === 429 || status === 503)) reply.header('retry-after', '2')
  const internal = error.code === 'INTERNAL_BUG'
  return fail(reply, status, internal ? 'internal error; see the log of the service' : error.message)
}

/** Problems of the query string, as the contract's 422. */
export const refuseQuery = (reply: FastifyReply, problems: readonly Problem[]): FastifyReply =>
  fail(reply, 422, detailOf(problems, 'query'))
