// The pause and the name of the weights as the service left them, beside its sessions folder in stateDir: a pause survives a restart
// within its lease.

import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import * as z from 'zod'
import { type InferenceRecord, NO_PAUSE } from '../domain/inference.js'

const recordSchema = z.strictObject({
  pause: z
    .strictObject({
      owner: z.string().min(1),
      mode: z.enum(['wait', 'keep']),
      sinceMs: z.number(),
      leaseUntilMs: z.number(),
    })
    .nullable(),
  policyVersion: z.string().nullable(),
  updates: z.int().min(0),
})

export interface InferenceFile {
  read(): InferenceRecord
  write(record: InferenceRecord): void
}

/** Read once; a file that is missing, or that this version cannot read, is like none. A write is whole or not there. */
export function inferenceFile(sessionsDir: string): InferenceFile {
  const path = `${sessionsDir}.inference.json`
  let current = load(path)
  return {
    read: () => current,
    write(record) {
      current = record
      const next = `${path}.${process.pid}.new`
      writeFileSync(next, JSON.stringify(record), { mode: 0o600 })
      renameSync(next, path)
    },
  }
}

function load(path: string): InferenceRecord {
  try {
    return recordSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    return NO_PAUSE
  }
}
