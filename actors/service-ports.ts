// What the control API asks of the service, answered by asking the actors.

import type { ControlPorts, NodeInfo, PauseHeld } from '../src/api/ports.js'
import type { Plan } from '../src/config/plan.js'
import type { Clock } from '../src/domain/clock.js'
import { errorData, RolloutError } from '../src/domain/errors.js'
import type { InferenceStatus } from '../src/domain/inference.js'
import type { UpstreamStandings } from './prober/standings.js'
import type { InferenceMessage, InferenceReply } from './protocol/inference.js'
import type { RolloutMessage } from './protocol/rollout.js'
import type { StagesMessage } from './protocol/stages.js'
import type { ActorRef } from './system/ref.js'
import type { ActorSystem } from './system/system.js'

export interface PortsInput {
  readonly system: Pick<ActorSystem, 'ask'>
  readonly plan: Plan
  readonly rollout: ActorRef<RolloutMessage>
  readonly stages: ActorRef<StagesMessage>
  readonly inference: ActorRef<InferenceMessage>
  readonly clock: Clock
  readonly gatewayUrl: string
  readonly isDraining: () => boolean
  readonly standings: UpstreamStandings
}

const ASK_MS = 5_000
/** Over what the stages of one session may take to let go. */
const CANCEL_MARGIN_MS = 60_000
/** Proxies that answer nothing are asked for this long, twice. */
const PAUSE_MARGIN_MS = 15_000

export function controlPorts(input: PortsInput): ControlPorts {
  const { system, plan, rollout, stages, inference, clock, gatewayUrl, isDraining, standings } = input
  const task: ControlPorts['task'] = async (taskId, generation) => {
    const reply = await system.ask(rollout, { type: 'task-requested', taskId, generation }, ASK_MS)
    return reply.type === 'task-found' ? reply.task : null
  }
  const metrics = async (): Promise<NodeInfo['metrics']> => {
    try {
      return await system.ask(stages, { type: 'stages-described' }, ASK_MS)
    } catch {
      // Shown as an unhealthy node; the status itself is still worth an answer.
      return null
    }
  }
  return {
    task,
    async submit(request) {
      const reply = await system.ask(rollout, { type: 'task-submit-requested', request }, ASK_MS)
      return reply.type === 'task-accepted'
        ? { ok: true, taskId: reply.taskId, warnings: reply.warnings }
        : { ok: false, error: reply.error }
    },
    async cancel(taskId, registerIfMissing) {
      const waitMs = plan.budgets.buildMs + plan.budgets.teardownMs + CANCEL_MARGIN_MS
      try {
        const question = { type: 'task-cancel-requested', taskId, registerIfMissing } as const
        const reply = await system.ask(rollout, question, waitMs)
        return reply.type === 'task-found' ? reply.task : null
      } catch (cause) {
        // The cancel goes on; the answer shows how far it is.
        if (errorData(cause).code === 'ACTOR_ASK_TIMEOUT') return await task(taskId, null)
        throw cause
      }
    },
    async inference() {
      const reply = await system.ask(inference, { type: 'inference-described' }, PAUSE_MARGIN_MS)
      if (reply.type === 'inference-refused') throw new RolloutError('INTERNAL_BUG', 'a question was refused')
      return reply
    },
    async pause(asked) {
      const question = { type: 'pause-requested', ...asked, atMs: clock.now() } as const
      return pauseReply(await system.ask(inference, question, asked.timeoutMs + PAUSE_MARGIN_MS))
    },
    async resume(asked) {
      return pauseReply(await system.ask(inference, { type: 'resume-requested', ...asked }, PAUSE_MARGIN_MS))
    },
    upstreams: () => standings.upstreams(),
    list: () => system.ask(rollout, { type: 'tasks-requested' }, ASK_MS),
    node: async () => ({
      nodeId: plan.nodeId,
      gatewayUrl,
      draining: isDraining(),
      workers: { init: plan.stages.init, running: plan.stages.running, postrun: plan.stages.postrun },
      metrics: await metrics(),
    }),
  }
}

const pauseReply = (reply: InferenceReply): InferenceStatus | PauseHeld =>
  reply.type === 'inference-refused' ? { heldBy: reply.owner } : reply
