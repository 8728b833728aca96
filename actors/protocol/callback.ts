// What may be said to the callback actor: results to deliver to trainers.

import type { KeptOutbox } from '../../src/store/control-records.js'
import type { ActorRef } from '../system/ref.js'

export type CallbackMessage =
  | {
      readonly type: 'deliver-result'
      /** As it lies in the outbox: it was put there before this is said, and may have been tried in an earlier life. */
      readonly entry: KeptOutbox
      /** Serialised once; the same bytes at each attempt. */
      readonly body: string
      readonly atMs: number
      readonly reportTo: ActorRef<DeliveryReport>
    }
  | { readonly type: 'deliveries-described'; readonly replyTo: ActorRef<DeliveriesDescription> }

/** What becomes of a delivery; told after each attempt. */
export interface DeliveryReport {
  readonly type: 'delivery-changed'
  readonly taskId: string
  readonly deliveryId: string
  /** `undelivered` is final: the receiver refused it, or the time to offer it has passed. */
  readonly state: 'pending' | 'delivered' | 'undelivered'
  readonly attempts: number
  readonly error: string | null
}

export interface DeliveriesDescription {
  readonly type: 'deliveries-description'
  /** Deliveries that have not ended. */
  readonly pending: number
  /** Of them, those that were tried at least once. */
  readonly tried: number
}
