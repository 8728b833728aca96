// Sizes of folders, in bytes of their files. A file that vanishes while it is looked at counts nothing.

import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'

export const bytesInFolder = async (folder: string): Promise<number> => await sum(folder, () => true)

/** Bytes of the files that were written at `sinceMs` (since the epoch) or later. */
export const bytesSince = async (folder: string, sinceMs: number): Promise<number> =>
  await sum(folder, modifiedMs => modifiedMs >= sinceMs)

/** A file with several names counts once. */
async function sum(
  folder: string,
  counts: (modifiedMs: number) => boolean,
  linked: Set<number> = new Set(),
): Promise<number> {
  let bytes = 0
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) bytes += await sum(path, counts, linked)
    else if (entry.isFile()) {
      const stats = await lstat(path).catch(() => null)
      if (!stats || !counts(stats.mtimeMs) || linked.has(stats.ino)) continue
      if (stats.nlink > 1) linked.add(stats.ino)
      bytes += stats.size
    }
  }
  return bytes
}
