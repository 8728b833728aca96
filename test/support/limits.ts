// Limits of a plan for tests: small where a test wants to reach them.

import type { LimitsPlan } from '../../src/config/plan.js'

export const limits: LimitsPlan = {
  queuedSessions: 100,
  samplesPerTask: 64,
  inflightPerSession: 8,
  admissionTimeoutMs: 5_000,
  creditRecords: 64,
  creditBytes: 32 * 1024 * 1024,
  sessionCredit: 8,
  bodyBytes: 16 * 1024 * 1024,
  mailbox: 1_024,
  drainMs: 5_000,
  eventQueue: 1_000,
  outputBytes: 1024 * 1024,
  sessionBytes: 16 * 1024 * 1024,
}
