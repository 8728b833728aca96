// Comlink ships its node adapter without types that NodeNext finds.

declare module 'comlink/dist/esm/node-adapter.mjs' {
  import type { MessagePort } from 'node:worker_threads'
  import type { Endpoint } from 'comlink'

  const nodeEndpoint: (port: MessagePort) => Endpoint

  export { nodeEndpoint as default }
}
