// Damages a file the way a disk does.
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

/** Changes one bit in every place of `path` where `marker` stands: LMDB may hold an older copy of its page beside the one in use. */
export function flipByte(path: string, marker: string): void {
  const bytes = readFileSync(path)
  const file = openSync(path, 'r+')
  let at = bytes.indexOf(marker)
  if (at === -1) throw new Error(`${path} does not hold ${marker}`)
  for (; at !== -1; at = bytes.indexOf(marker, at + 1)) writeSync(file, Buffer.from([(bytes[at] ?? 0) ^ 1]), 0, 1, at)
  closeSync(file)
}
