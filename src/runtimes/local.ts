// Runtime `local`: processes on this host in a session folder of their own. No isolation beyond the folder's mode, so it takes
// no image and refuses every limit it cannot hold. What must hold: nothing of the session lives after `destroy`.

import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, mkdir, realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { RolloutError } from '../domain/errors.js'
import type {
  ExecOptions,
  ExecRequest,
  ExecResult,
  Runtime,
  RuntimeDeps,
  RuntimeHandle,
  RuntimePlugin,
} from './base.js'
import { evalSessionDir, runtimeEnvironment, sessionLayout } from './environment.js'
import { launch, type OutputFile } from './launch.js'
import { checkLocalSpec } from './local/check.js'
import {
  EXEC_MARKER,
  endProcesses,
  findProcesses,
  groupLives,
  type ProcessMatch,
  ROLE_MARKER,
  SESSION_MARKER,
} from './processes.js'
import { checkNoLinks, lstatOrNull, makeFolder, openRegular, refused, resolveWithin } from './shared/confined-path.js'
import { copyInto } from './shared/copy-tree.js'
import { openOutputFile } from './shared/output-file.js'

export function localRuntime(deps: RuntimeDeps): RuntimePlugin {
  /** Groups started in this thread, by session folder: all there is to kill where there is no /proc. */
  const groups = new Map<string, Set<number>>()

  return {
    id: 'local',
    summary: 'Processes on this host in a folder of their own; no isolation.',
    check: checkLocalSpec,

    async create({ sessionId, sessionDir, spec, role }) {
      const root = resolve(role === 'eval' ? evalSessionDir(sessionDir) : sessionDir)
      await mkdir(root, { recursive: true, mode: 0o700 })
      await chmod(root, 0o700)
      const layout = sessionLayout(root)
      for (const folder of Object.values(layout)) await mkdir(folder, { recursive: true, mode: 0o700 })
      if (spec.workdir !== null) await makeFolder(root, resolveWithin(root, layout.workspaceDir, spec.workdir))
      return {
        backend: 'local',
        sessionId,
        role,
        sessionDir: root,
        workspaceDir: layout.workspaceDir,
        homeDir: layout.homeDir,
      }
    },

    attach: handle => attach(deps, handle, groups),

    async destroy(handle) {
      const started = groups.get(handle.sessionDir)
      const match = await matchOf(handle)
      const report = await endProcesses(() => findProcesses(match), [...(started ?? [])], deps.clock)
      groups.delete(handle.sessionDir)
      return report
    },
  }
}

/** The agent's handle stands for the whole session, the fresh copy's for itself alone. */
const matchOf = async (handle: RuntimeHandle): Promise<ProcessMatch> => ({
  markers: {
    [SESSION_MARKER]: handle.sessionId,
    ...(handle.role === 'eval' && { [ROLE_MARKER]: 'eval' }),
  },
  folder: await realpath(handle.sessionDir).catch(() => handle.sessionDir),
})

function attach(deps: RuntimeDeps, handle: RuntimeHandle, groups: Map<string, Set<number>>): Runtime {
  const root = handle.sessionDir
  // Logs of the fresh copy lie in the folders of its session.
  const logRoot = handle.role === 'eval' ? dirname(root) : root
  const inside = (path: string): string => resolveWithin(root, handle.workspaceDir, path)
  const open = (path: string): Promise<OutputFile> => openOutputFile(logRoot, path, deps.fileBytes)

  return {
    handle,

    async exec(request: ExecRequest, options: ExecOptions = {}): Promise<ExecResult> {
      const cwd = await existingFolder(root, inside(request.cwd ?? '.'))
      const execId = randomUUID()
      const { defaults, fixed } = runtimeEnvironment(handle, deps.basePath)
      const files = await openFiles(request, open)
      const known = groups.get(root) ?? new Set()
      groups.set(root, known)
      const result = await launch({
        argv: argvOf(request.command),
        cwd,
        env: { ...defaults, ...request.env, ...fixed, [EXEC_MARKER]: execId },
        ...(request.stdin !== undefined && { stdin: request.stdin }),
        ...(request.timeoutMs !== undefined && { timeoutMs: request.timeoutMs }),
        ...(options.signal && { signal: options.signal }),
        tailBytes: deps.outputBytes,
        ...files,
        onProcess: started => {
          known.add(started.pid)
          options.onProcess?.(started)
        },
        endAll: async started => {
          await endProcesses(() => findProcesses({ markers: { [EXEC_MARKER]: execId } }), [started.pid], deps.clock)
        },
        clock: deps.clock,
      })
      for (const group of known) if (!groupLives(group)) known.delete(group)
      return result
    },

    async upload(source, target) {
      const to = inside(target)
      await copyInto(root, source, target.endsWith('/') ? `${to}/` : to, deps.sourceRoots)
    },

    async writeFile(target, content, mode = 0o644) {
      const { O_WRONLY, O_CREAT, O_TRUNC } = constants
      const file = await openRegular(root, inside(target), O_WRONLY | O_CREAT | O_TRUNC, mode)
      try {
        await file.writeFile(content)
        await file.chmod(mode)
      } finally {
        await file.close()
      }
    },

    async readFile(source, maxBytes) {
      const path = inside(source)
      await checkNoLinks(root, path)
      const stats = await lstatOrNull(path)
      if (!stats?.isFile()) return null
      const file = await openRegular(root, path, constants.O_RDONLY)
      try {
        const buffer = Buffer.alloc(Math.min(maxBytes, (await file.stat()).size))
        let length = 0
        while (length < buffer.length) {
          const { bytesRead } = await file.read(buffer, length, buffer.length - length, length)
          if (bytesRead === 0) break
          length += bytesRead
        }
        return buffer.subarray(0, length)
      } finally {
        await file.close()
      }
    },
  }
}

async function openFiles(request: ExecRequest, open: (path: string) => Promise<OutputFile>) {
  const opened: OutputFile[] = []
  const openOne = async (path: string | undefined): Promise<readonly OutputFile[]> => {
    if (path === undefined) return []
    const file = await open(path)
    opened.push(file)
    return [file]
  }
  try {
    const stdout = await openOne(request.stdoutPath)
    const stderr = request.stderrPath === request.stdoutPath ? stdout : await openOne(request.stderrPath)
    const both = await openOne(request.combinedPath)
    return { stdoutFiles: [...stdout, ...both], stderrFiles: [...stderr, ...both] }
  } catch (cause) {
    for (const file of opened) await file.close()
    throw cause
  }
}

/** pipefail: a CLI that crashes in front of a pipe must not count as success. */
function argvOf(command: string | readonly string[]): readonly [string, ...string[]] {
  if (typeof command === 'string') return ['bash', '-o', 'pipefail', '-c', command]
  const [program, ...rest] = command
  if (program === undefined) throw new RolloutError('RUNTIME_FAILED', 'a command needs at least a program')
  return [program, ...rest]
}

async function existingFolder(root: string, path: string): Promise<string> {
  await checkNoLinks(root, path)
  const stats = await lstatOrNull(path)
  if (stats === null) throw new RolloutError('RUNTIME_FAILED', `the working folder ${path} does not exist`)
  if (!stats.isDirectory()) throw refused(path, 'it is not a folder')
  return path
}
