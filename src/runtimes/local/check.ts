// What runtime `local` refuses at submit: whatever it could not hold. Paths start in the spec.

import type { PrepareAction, RuntimeSpec } from '../../domain/task.js'
import { environmentNameProblems } from '../environment.js'
import { relativePathProblem } from '../shared/confined-path.js'

type Problem = { readonly path: string; readonly message: string }

export function checkLocalSpec(spec: RuntimeSpec): readonly Problem[] {
  return [
    ...unsupported(spec),
    ...pathProblem('workdir', spec.workdir ?? undefined),
    ...actionProblems('prepare', spec.prepare),
    ...actionProblems('eval_prepare', spec.eval_prepare ?? []),
  ]
}

function unsupported(spec: RuntimeSpec): readonly Problem[] {
  const refusals: readonly (readonly [string, boolean, string])[] = [
    ['image', spec.image !== null, 'must be absent: runtime `local` runs on this host'],
    ['network', spec.network !== 'host', 'must be "host": runtime `local` has no network of its own'],
    ['allow_internet', !spec.allow_internet, 'must be true: runtime `local` cannot cut the network'],
    ['internet_volumes', spec.internet_volumes.length > 0, 'must be empty: runtime `local` mounts nothing'],
    ['kwargs', Object.keys(spec.kwargs).length > 0, 'must be empty: runtime `local` takes no options'],
    [
      'direct_exec_init_command',
      spec.direct_exec_init_command !== null,
      'must be absent: for runtime `apptainer` only',
    ],
    ['import_path', spec.import_path !== null, 'must be absent when `backend` names a runtime'],
    ['cpus', spec.cpus !== null, 'must be absent: runtime `local` cannot hold this limit'],
    ['memory_mb', spec.memory_mb !== null, 'must be absent: runtime `local` cannot hold this limit'],
    ['storage_mb', spec.storage_mb !== null, 'must be absent: runtime `local` cannot hold this limit'],
    ['gpus', spec.gpus !== 0, 'must be 0: runtime `local` cannot hold this limit'],
  ]
  return refusals.filter(([, broken]) => broken).map(([path, , message]) => ({ path, message }))
}

function actionProblems(path: string, actions: readonly PrepareAction[]): readonly Problem[] {
  return actions.flatMap((action, index) => {
    const at = `${path}[${index}]`
    if (action.type !== 'exec') return pathProblem(`${at}.target`, action.target)
    const names = environmentNameProblems(action.env ?? {}, 'step')
    return [
      ...pathProblem(`${at}.cwd`, action.cwd),
      ...names.map(({ name, message }) => ({ path: `${at}.env.${name}`, message })),
    ]
  })
}

function pathProblem(path: string, value: string | undefined): readonly Problem[] {
  const message = value === undefined ? null : relativePathProblem(value)
  return message === null ? [] : [{ path, message }]
}
