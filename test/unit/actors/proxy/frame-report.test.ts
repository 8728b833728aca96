// What a call tells the merge thread, when that thread is gone: the harness is refused, and the log keeps the code of the cause.

import t from 'tap'
import { frameReport } from '../../../../actors/proxy/frame-report.js'
import type { ProxyServices } from '../../../../actors/proxy/services.js'
import type { SessionEntry } from '../../../../actors/proxy/sessions.js'
import { replaceableSender } from '../../../../actors/threads/port-link.js'
import { createLogger } from '../../../../src/observability/logger.js'
import { recordOf } from '../../../support/ledger-fixtures.js'

t.test('a merge thread that died: 503, and a log line with ACTOR_DEAD', async t => {
  const lines: Record<string, unknown>[] = []
  const log = createLogger({ level: 'warn', destination: { write: line => lines.push(JSON.parse(line)) } })
  const sender = replaceableSender({ creditRecords: 1, creditBytes: 1_000, sessionCredit: 1 })
  // Of its services a report reads these two.
  const services = { sender, log } as unknown as ProxyServices
  const entry = { session: { sessionId: 's-1', attempt: 1 } } as unknown as SessionEntry
  const report = frameReport(services, entry, { sequence: 0, startedAtMs: 0 })
  t.match(await report.captured(recordOf({ id: 'c-1', prompt: [1], sampled: [2] })), { status: 503 })
  t.match(lines, [{ level: 'warn', event: 'frame-lose', kind: 'completion-captured', reason: 'ACTOR_DEAD' }])
})
