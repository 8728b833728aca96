// The plugin tables that a task request is checked against. They are handed in, so that a check can be tested with tables of its own.

import type { BuilderPlugin } from '../builders/base.js'
import type { EvaluatorPlugin } from '../evaluators/base.js'
import type { HarnessPreset } from '../harnesses/base.js'
import type { RuntimePlugin } from '../runtimes/base.js'

export interface TaskPlugins {
  readonly harnesses: Readonly<Record<string, Pick<HarnessPreset, 'check'>>>
  readonly runtimes: Readonly<Record<string, Pick<RuntimePlugin, 'check'>>>
  readonly builders: Readonly<Record<string, Pick<BuilderPlugin, 'check'>>>
  readonly evaluators: Readonly<Record<string, Pick<EvaluatorPlugin, 'check'>>>
}
