// One install of a folder at a time, over processes. The lock is a folder beside it whose time stamp its owner keeps fresh,
// so that a killed owner's lock goes stale and is taken over.

import lockfile from 'proper-lockfile'
import type { Clock } from '../../domain/clock.js'
import { RolloutError } from '../../domain/errors.js'

const STALE_MS = 15_000
const RETRY_MS = 500

export interface FolderLock {
  readonly folder: string
  readonly clock: Clock
  readonly signal?: AbortSignal
}

/**
 * Runs `work` alone on the folder; `onWait` is called at each vain try. The signal that `work` gets fires when the caller's
 * does, and when the lock was lost (another process took it for stale).
 */
export async function withFolderLock<T>(
  { folder, clock, signal }: FolderLock,
  onWait: () => void,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const inner = new AbortController()
  const stop = () => inner.abort()
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const release = await acquire(folder, clock, inner, onWait)
    try {
      return await work(inner.signal)
    } finally {
      // A lost lock cannot be released; it is the other's then.
      await release().catch(() => undefined)
    }
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

async function acquire(
  folder: string,
  clock: Clock,
  inner: AbortController,
  onWait: () => void,
): Promise<() => Promise<void>> {
  for (;;) {
    if (inner.signal.aborted) throw new RolloutError('HARNESS_INSTALL_FAILED', `${folder}: cancelled before it began`)
    try {
      return await lockfile.lock(folder, { realpath: false, stale: STALE_MS, onCompromised: () => inner.abort() })
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'ELOCKED') throw cause
    }
    onWait()
    await clock.sleep(RETRY_MS, inner.signal).catch(() => undefined)
  }
}
