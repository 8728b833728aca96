// The thread of a prefix-merge actor: it owns the ledgers of its pair's sessions and acknowledges what the proxy captured. A
// restarted proxy brings a fresh link; the ledgers go on.

import type { LimitsPlan } from '../../src/config/plan.js'
import { mergeProps } from '../merge/actor.js'
import { captureLinks } from '../merge/links.js'
import { defineThread } from './entry.js'
import { CAPTURE_PORT, MERGE_ACTOR } from './pair-names.js'

export interface MergeThreadData {
  readonly limits: LimitsPlan
}

export const thread = defineThread<MergeThreadData, Record<string, never>>({
  async start(thread, { limits }) {
    const links = captureLinks(thread.log)
    thread.system.spawn(mergeProps({ links, mailbox: limits.mailbox }), MERGE_ACTOR)
    thread.onPort(CAPTURE_PORT, port => links.add(port))
    return {}
  },
})
