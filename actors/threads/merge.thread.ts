// The thread of a prefix-merge actor: it owns the ledgers of its pair's sessions and their shard of the store, and acknowledges what the
// proxy captured when it is on disk. A restarted proxy brings a fresh link; the ledgers go on. A thread that takes the place of a dead
// one reads them from the shard.

import type { LimitsPlan, StorePlan } from '../../src/config/plan.js'
import { armFailpoint } from '../../src/observability/failpoints.js'
import { openRecordStore } from '../../src/store/record-store.js'
import { mergeProps } from '../merge/actor.js'
import { memoryJournal, shardJournal } from '../merge/journal.js'
import { captureLinks } from '../merge/links.js'
import type { RolloutMessage } from '../protocol/rollout.js'
import { defineThread } from './entry.js'
import { CAPTURE_PORT, MERGE_ACTOR, ROLLOUT_ADDRESS } from './pair-names.js'

export interface MergeThreadData {
  readonly limits: LimitsPlan
  readonly pair: number
  readonly failpoint: string | null
  /** null = records live and die with the thread. */
  readonly store: (StorePlan & { readonly stateDir: string }) | null
}

export const thread = defineThread<MergeThreadData, Record<string, never>>({
  async start(thread, { limits, pair, failpoint, store }) {
    armFailpoint(failpoint)
    const { clock, log, system } = thread
    const links = captureLinks(log)
    const journal =
      store === null
        ? memoryJournal()
        : shardJournal(await openRecordStore({ ...store, shard: pair, mode: 'owner' }), clock, log)
    const rollout = system.refOf<RolloutMessage>(ROLLOUT_ADDRESS)
    system.spawn(
      mergeProps({
        links,
        journal,
        onIntake: error => rollout.tell({ type: 'intake-set', pair, error }),
        mailbox: limits.mailbox,
      }),
      MERGE_ACTOR,
    )
    thread.onPort(CAPTURE_PORT, port => links.add(port))
    return {}
  },
})
