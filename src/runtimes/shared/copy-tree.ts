// Copies a file or folder of this host into a session folder. It merges: what is there and not in the source stays.
// Links of the source are copied as links; links in the target are never followed.

import { constants } from 'node:fs'
import { chmod, copyFile, lstat, readdir, readlink, realpath, stat, symlink, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { RolloutError } from '../../domain/errors.js'
import { checkNoLinks, isWithin, lstatOrNull, makeFolder, refused } from './confined-path.js'

/**
 * `source`: absolute, on this host, below one of `sourceRoots` (empty = anywhere). `target`: absolute, below `root`.
 * A file goes to `target` itself, or into it when it is a folder or ends with a slash; a folder's entries go into `target`.
 */
export async function copyInto(
  root: string,
  source: string,
  target: string,
  sourceRoots: readonly string[],
): Promise<void> {
  const from = await realpath(source).catch((cause: unknown) => {
    throw new RolloutError('RUNTIME_FAILED', `upload source ${JSON.stringify(source)} cannot be read`, { cause })
  })
  await checkSourceRoot(from, source, sourceRoots)
  await checkNoLinks(root, target)
  const kind = await stat(from)
  if (kind.isDirectory()) return await copyFolder(root, from, target)
  const existing = await lstatOrNull(target)
  const into = existing?.isDirectory() === true || target.endsWith('/')
  await copyEntry(root, from, into ? join(target, basename(source)) : target)
}

async function copyFolder(root: string, from: string, to: string): Promise<void> {
  await makeFolder(root, to)
  for (const entry of await readdir(from)) await copyEntry(root, join(from, entry), join(to, entry))
}

async function copyEntry(root: string, from: string, to: string): Promise<void> {
  const stats = await lstat(from)
  if (stats.isDirectory()) {
    await copyFolder(root, from, to)
    return await chmod(to, stats.mode & 0o777)
  }
  const existing = await lstatOrNull(to)
  if (existing?.isDirectory()) throw refused(to, 'a folder stands where a file should go')
  await makeFolder(root, dirname(to))
  if (stats.isSymbolicLink()) {
    if (existing) await unlink(to)
    return await symlink(await readlink(from), to)
  }
  if (!stats.isFile()) throw refused(from, 'only files, folders and links can be uploaded')
  if (existing && !existing.isFile()) throw refused(to, 'it is a link or a device')
  if (existing) await unlink(to)
  // EXCL opens with O_EXCL, which follows no link.
  await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  await chmod(to, stats.mode & 0o777)
}

async function checkSourceRoot(from: string, source: string, roots: readonly string[]): Promise<void> {
  if (roots.length === 0) return
  for (const root of roots) {
    if (isWithin(await realpath(root).catch(() => root), from)) return
  }
  throw new RolloutError(
    'RUNTIME_PATH_REFUSED',
    `upload source ${JSON.stringify(source)} is outside security.sourceRoots`,
  )
}
