// Children of the benchmark: started with their script and arguments, spoken to over Node's own channel, ended with their parent.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

export interface Child {
  readonly url: string
  /** Sends a command and waits for its one answer. */
  ask<R>(command: unknown): Promise<R>
  stop(): Promise<void>
}

/** Resolves once the child has told its URL; rejects when it ends before. `script`: file beside this one. */
export async function startChild(
  script: string,
  args: readonly string[],
  execArgv: readonly string[] = [],
): Promise<Child> {
  const child = fork(new URL(script, import.meta.url), args, { execArgv: [...execArgv] })
  // The child speaks first, and says its URL.
  const { url } = (await answerOf(child)) as { url: string }
  return {
    url,
    async ask<R>(command: unknown): Promise<R> {
      const answer = answerOf(child)
      child.send(command as object)
      // Each script states what it answers to which command.
      return (await answer) as R
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.disconnect()
      await once(child, 'exit')
    },
  }
}

function answerOf(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`a process of the benchmark ended with code ${code}`))
    child.once('exit', onExit)
    child.once('message', message => {
      child.off('exit', onExit)
      resolve(message)
    })
  })
}
