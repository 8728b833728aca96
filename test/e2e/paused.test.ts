// A merge actor that stops acknowledging: with two records of credit its pair's calls wait, unsent or unanswered, and nothing else does. The
// other pair's sessions come to their end meanwhile, and once it acknowledges again so do all, with every sampled token accounted for.

import t from 'tap'
import type { MergeMessage } from '../../actors/protocol/merge.js'
import type { ProxyMessage } from '../../actors/protocol/proxy.js'
import { mergeAddress, proxyAddress } from '../../actors/threads/pair-names.js'
import { agentTask, runService } from '../support/service.js'

t.setTimeout(180_000)

const ASK_MS = 20_000
const PER_PAIR = 3
const CREDIT = 2

t.test('merge paused at credit 2: nothing is lost and no session of another pair waits', async t => {
  const { connection, service } = await runService(t, {
    gateway: { proxies: 2 },
    limits: { creditRecords: CREDIT },
    stages: { init: 6, ready: 6, running: 6, postrun: 2 },
  })
  const { system } = service
  const proxy = system.refOf<ProxyMessage>(proxyAddress(1))
  const merge = system.refOf<MergeMessage>(mergeAddress(1))
  merge.tell({ type: 'pause-acknowledgements' })
  const ended: string[] = []
  for await (const { type, data } of connection.events()) {
    // Sessions go to the pair with the fewest: three to each.
    if (type === 'hello') await connection.submit(agentTask({ num_samples: 2 * PER_PAIR, timeout_seconds: 120 }))
    if (type === 'session.state_changed' && data['status'] === 'COMPLETED') ended.push(String(data['session_id']))
    if (ended.length === PER_PAIR) break
  }
  for (let waiting = 0; waiting < PER_PAIR; ) {
    const { unacknowledged } = await system.ask(proxy, { type: 'proxy-described' }, ASK_MS)
    waiting = unacknowledged
  }
  t.match(
    await system.ask(merge, { type: 'merge-described' }, ASK_MS),
    { sessions: PER_PAIR, calls: CREDIT },
    'no more than the credit was sent',
  )
  t.match(await connection.status(), { pipeline: { pending_sessions: PER_PAIR } }, 'the others wait')

  merge.tell({ type: 'resume-acknowledgements' })
  const { status, results } = await connection.task('task-1', 120)
  t.equal(status, 'completed')
  t.equal(results.length, 2 * PER_PAIR)
  for (const result of results) {
    t.match(result, { status: 'COMPLETED', error: null })
    const { metadata } = result['trajectory'] as {
      metadata: {
        ledger: {
          calls: number
          failed_calls: number
          tokens: { sampled: number; trained: number; set_aside: Record<string, number> }
        }
      }
    }
    const { calls, failed_calls, tokens } = metadata.ledger
    const aside = Object.values(tokens.set_aside).reduce((sum, count) => sum + count, 0)
    t.ok(calls >= 2)
    t.equal(failed_calls, 0)
    t.ok(tokens.trained > 0)
    t.equal(tokens.sampled, tokens.trained + aside)
  }
  t.strictSame((await service.stop()).missed, [])
})
