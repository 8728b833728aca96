// A file system of its own for tests of a full or read-only disk: a tmpfs, which only root may mount.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SmallDisk {
  readonly folder: string
  /** Leaves `bytes` free. */
  fill(bytes: number): void
  empty(): void
  remount(mode: 'ro' | 'rw'): void
  unmount(): void
}

/** Why there can be none here, or false: for tap's `skip`. */
export function noSmallDisk(): string | false {
  if (process.getuid?.() !== 0) return 'only root may mount a small disk'
  try {
    smallDisk('1m').unmount()
    return false
  } catch (cause) {
    return `a small disk cannot be mounted here: ${(cause as Error).message}`
  }
}

export function smallDisk(size: string): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'sextant-small-disk-'))
  const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'pipe' })
  try {
    run('mount', '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder)
  } catch (cause) {
    rmdirSync(folder)
    throw cause
  }
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill(bytes) {
      const { bavail, bsize } = statfsSync(folder)
      writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - bytes), 1))
    },
    empty: () => rmSync(ballast, { force: true }),
    remount: mode => void run('mount', '-o', `remount,${mode}`, folder),
    unmount() {
      run('umount', '-l', folder)
      rmdirSync(folder)
    },
  }
}
