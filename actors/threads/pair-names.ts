// Names that both threads of a pair and whoever speaks to them share.

import type { Address } from '../system/ref.js'

/** Name of the port between the two, at both ends. */
export const CAPTURE_PORT = 'capture'
export const PROXY_ACTOR = 'proxy'
export const MERGE_ACTOR = 'merge'
/** A thread boots in tens of milliseconds; a loaded machine takes its time. */
export const START_MS = 20_000

/** The prober of main. */
export const ROLLOUT_ADDRESS: Address = { system: 'main', path: '/rollout/' }
export const PROBER_ADDRESS: Address = { system: 'main', path: '/prober/' }

/** Actors of pair `number`; `system` is the name of their thread. */
export const proxyAddress = (number: number): Address => ({ system: `proxy-${number}`, path: `/${PROXY_ACTOR}/` })
export const mergeAddress = (number: number): Address => ({ system: `merge-${number}`, path: `/${MERGE_ACTOR}/` })
