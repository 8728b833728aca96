// A thread for tests: a sample actor, a port to a neighbour, and ways to fail.

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { defineThread } from '../../actors/threads/entry.js'
import { sampleActor } from './sample-actor.js'

export interface SampleThreadData {
  /** TCP port to listen on; 0 = any free one. */
  readonly port: number
  readonly fail?: string
  /** Never comes up, and answers nothing. */
  readonly stuck?: boolean
  /** What to say to the neighbour on every port to it. */
  readonly greeting?: string
}

export const thread = defineThread<SampleThreadData, { port: number; neighbours: readonly string[] }>({
  async start(context, { port, fail, greeting, stuck }) {
    if (fail !== undefined) throw new TypeError(fail)
    while (stuck);
    const neighbours: string[] = []
    context.onPort('neighbour', neighbour => {
      neighbours.push(context.name)
      neighbour.postMessage({ greeting: greeting ?? `hello from ${context.name}` })
      neighbour.once('message', ({ greeting: heard }: { greeting: string }) => {
        context.system.refOf<{ type: 'heard'; by: string; greeting: string }>({ system: 'main', path: '/ears/' }).tell({
          type: 'heard',
          by: context.name,
          greeting: heard,
        })
      })
    })
    const server = createServer().listen(port, '127.0.0.1')
    await once(server, 'listening')
    context.system.spawn(
      sampleActor({
        signal: async ({ type }) => {
          if (type === 'post-stop') await new Promise(resolve => server.close(resolve))
        },
      }),
      'sample',
    )
    context.system.spawn(sampleActor({ supervision: { intensity: 0 } }), 'fragile')
    return { port: (server.address() as AddressInfo).port, neighbours }
  },
})
