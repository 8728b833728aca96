// Paths inside a session folder. What lies there was made by an agent, so nothing is followed: each component is looked at,
// and a link, a device or a `..` that would leave the folder is refused (RUNTIME_PATH_REFUSED).

import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { RolloutError } from '../../domain/errors.js'

/** True when `path` is `root` or lies below it. Both absolute and normalised. */
export const isWithin = (root: string, path: string): boolean => path === root || path.startsWith(root + sep)

/** Resolves `path` against `base` and refuses it when the text leaves `root`. Does not look at the disk. */
export function resolveWithin(root: string, base: string, path: string): string {
  const resolved = resolve(base, path)
  if (path.includes('\0') || !isWithin(root, resolved)) throw refused(path, 'it leaves the session folder')
  return resolved
}

/** Problem of a path that a task may state: relative, not leaving its folder. null = fine. */
export function relativePathProblem(path: string): string | null {
  if (path.trim() === '') return 'must not be blank'
  if (isAbsolute(path)) return 'must be relative to the workspace'
  if (!isWithin('/w', resolve('/w', path))) return 'must not leave the workspace'
  return null
}

/** Looks at every component of `path` below `root`; a missing rest is fine. Throws when one is a link or no folder. */
export async function checkNoLinks(root: string, path: string): Promise<void> {
  const parts = relative(root, path).split(sep).filter(Boolean)
  let current = root
  for (const [index, part] of parts.entries()) {
    current = resolve(current, part)
    const stats = await lstatOrNull(current)
    if (stats === null) return
    if (stats.isSymbolicLink()) throw refused(path, `${current} is a link`)
    if (index < parts.length - 1 && !stats.isDirectory()) throw refused(path, `${current} is not a folder`)
  }
}

/** Makes `path` and what is missing above it, below `root`. */
export async function makeFolder(root: string, path: string): Promise<void> {
  const parts = relative(root, path).split(sep).filter(Boolean)
  let current = root
  for (const part of parts) {
    current = resolve(current, part)
    const stats = await lstatOrNull(current)
    if (stats === null) await mkdir(current).catch(ignoreExists)
    else if (!stats.isDirectory()) throw refused(path, `${current} is not a folder`)
  }
}

/**
 * Opens a regular file below `root` without following links; makes the folders above it when `flags` may create.
 * The caller closes it. Throws RUNTIME_PATH_REFUSED, or the file system's own error (ENOENT ...).
 */
export async function openRegular(root: string, path: string, flags: number, mode = 0o644): Promise<FileHandle> {
  if (flags & constants.O_CREAT) await makeFolder(root, dirname(path))
  await checkNoLinks(root, path)
  const handle = await open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, mode).catch(cause => {
    const code = (cause as NodeJS.ErrnoException).code
    if (code === 'ELOOP' || code === 'ENXIO' || code === 'EISDIR') throw refused(path, 'it is not a regular file')
    throw cause
  })
  try {
    if (!(await handle.stat()).isFile()) throw refused(path, 'it is not a regular file')
    const opened = await realpath(`/proc/self/fd/${handle.fd}`).catch(() => null)
    if (opened !== null && !isWithin(await realpath(root), opened))
      throw refused(path, 'a folder on the way was replaced')
    return handle
  } catch (cause) {
    await handle.close()
    throw cause
  }
}

export async function lstatOrNull(path: string) {
  return await lstat(path).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT' || cause.code === 'ENOTDIR') return null
    throw cause
  })
}

export const refused = (path: string, why: string): RolloutError =>
  new RolloutError('RUNTIME_PATH_REFUSED', `the path ${JSON.stringify(path)} is refused: ${why}`, { details: { path } })

function ignoreExists(cause: NodeJS.ErrnoException): void {
  if (cause.code !== 'EEXIST') throw cause
}
