// What may be said to the callback actor: results to deliver to trainers.

export type CallbackMessage = {
  readonly type: 'deliver-result'
  readonly taskId: string
  readonly url: string
  /** Serialised once; the same bytes at each attempt. */
  readonly body: string
  readonly deliveryId: string
}
