// The version record of an environment: what it holds and how. An older one is brought forward in one commit with its new number; a newer
// one, or one of another kind, is refused before anything of it is read.

import { RolloutError } from '../domain/errors.js'
import { isObject } from '../domain/json.js'
import type { StoreChange, StoreEnvironment } from './base.js'
import { damaged } from './errors.js'

/** What a migration may read: the store as the former version left it. */
export type MigrationView = Pick<StoreEnvironment, 'get' | 'entries' | 'keys'>

export interface Schema {
  /** What the environment is for, like `shard`. */
  readonly kind: string
  /** Counts from 1. */
  readonly version: number
  /** From version n to n + 1, for every n below `version`. */
  readonly migrations: Readonly<Record<number, (view: MigrationView) => Iterable<StoreChange>>>
}

const VERSION_KEY = ['version'] as const

interface Opened {
  readonly folder: string
  readonly isOwner: boolean
}

/** Throws STORE_VERSION, STORE_DAMAGED, and what a commit may. */
export async function ensureSchema(
  environment: StoreEnvironment,
  schema: Schema,
  { folder, isOwner }: Opened,
): Promise<void> {
  const found = readVersion(environment, folder)
  if (found === null) {
    // A reader that comes between the making of the file and its first commit finds nothing, which is right.
    if (isOwner) await environment.commit([versionRecord(schema.kind, schema.version)])
    return
  }
  if (found.kind !== schema.kind) throw refused(`${folder} holds a ${found.kind} store, wanted ${schema.kind}`)
  if (found.version > schema.version) {
    throw refused(
      `${folder} was written by a newer version: schema ${found.version}, this one knows up to ${schema.version}`,
    )
  }
  for (let version = found.version; version < schema.version; version += 1) {
    const migrate = schema.migrations[version]
    if (!isOwner || migrate === undefined) {
      throw refused(
        `${folder} has schema ${version}, wanted ${schema.version}: ${
          isOwner ? 'this version cannot bring it forward' : 'a start of the service brings it forward'
        }`,
      )
    }
    await environment.commit([...migrate(environment), versionRecord(schema.kind, version + 1)])
  }
}

function readVersion(environment: StoreEnvironment, folder: string): { kind: string; version: number } | null {
  const bytes = environment.get(VERSION_KEY)
  if (bytes === null) return null
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes))
  if (!isObject(value) || typeof value['kind'] !== 'string' || typeof value['version'] !== 'number') {
    throw damaged(`the version record of ${folder} cannot be read`)
  }
  return { kind: value['kind'], version: value['version'] }
}

const versionRecord = (kind: string, version: number): StoreChange => ({
  key: VERSION_KEY,
  value: new TextEncoder().encode(JSON.stringify({ kind, version })),
})

const refused = (message: string): RolloutError => new RolloutError('STORE_VERSION', message)
