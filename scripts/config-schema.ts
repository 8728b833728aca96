// Writes docs/cluster.schema.json, the JSON Schema of cluster.json for editors: `node dist/scripts/config-schema.js`.

import { mkdirSync, writeFileSync } from 'node:fs'
import { configJsonSchema } from '../src/config/schema.js'

mkdirSync('docs', { recursive: true })
writeFileSync('docs/cluster.schema.json', `${JSON.stringify(configJsonSchema(), null, 2)}\n`)
