// The bundled task: docs/examples/<name>/task.json with its folder filled in, and what the quickstart sets on it.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isObject, type JsonObject } from '../../domain/json.js'

const EXAMPLES = fileURLToPath(new URL('../../../../docs/examples', import.meta.url))

export interface ExampleSettings {
  readonly taskId: string
  readonly harness: string
  readonly samples: number
  readonly seed: number
}

/** `${exampleDir}` in any text of the task stands for its folder. */
export async function exampleTask(name: string, settings: ExampleSettings): Promise<JsonObject> {
  const folder = join(EXAMPLES, name)
  const text = await readFile(join(folder, 'task.json'), 'utf8')
  const task = JSON.parse(text.replaceAll(/\$\{exampleDir\}/g, JSON.stringify(folder).slice(1, -1))) as JsonObject
  const agent = isObject(task.agent) ? task.agent : {}
  const sampling = isObject(task.sampling) ? task.sampling : {}
  return {
    ...task,
    task_id: settings.taskId,
    num_samples: settings.samples,
    agent: { ...agent, harness: settings.harness } as JsonObject,
    sampling: { ...sampling, seed: settings.seed } as JsonObject,
  }
}
