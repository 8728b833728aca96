// A trainer's receiver on loopback that lives through every kill and keeps what it was sent.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  readonly deliveryId: string
  readonly body: string
}

export interface Receiver {
  readonly url: string
  /** Task id -> what came, in order. */
  readonly received: ReadonlyMap<string, readonly Received[]>
  close(): Promise<void>
}

export async function chaosReceiver(): Promise<Receiver> {
  const received = new Map<string, Received[]>()
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', part => {
      body += part
    })
    request.on('end', () => {
      const taskId = String((JSON.parse(body) as { task_id?: unknown }).task_id)
      const deliveryId = String(request.headers['x-sextant-delivery-id'])
      received.set(taskId, [...(received.get(taskId) ?? []), { deliveryId, body }])
      response.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback/task_result`,
    received,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
