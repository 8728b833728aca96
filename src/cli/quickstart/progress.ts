// What the quickstart shows while sessions run: sessions by stage, model calls, tokens. One line that is redrawn on a
// terminal; elsewhere a line only when a session changes its stage.

export interface ProgressEvent {
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

interface SessionProgress {
  status: string
  calls: number
  tokens: number
}

export interface Progress {
  note(event: ProgressEvent): void
  /** Clears the line, so that what follows stands alone. */
  end(): void
}

/** `stream` is where it is drawn; `interactive` false = plain lines. */
export function createProgress(stream: { write(text: string): unknown }, interactive: boolean): Progress {
  const sessions = new Map<string, SessionProgress>()
  let shown = ''

  const line = (): string => {
    const byStatus = new Map<string, number>()
    let calls = 0
    let tokens = 0
    for (const session of sessions.values()) {
      byStatus.set(session.status, (byStatus.get(session.status) ?? 0) + 1)
      calls += session.calls
      tokens += session.tokens
    }
    const stages = [...byStatus].map(([status, count]) => `${count} ${status}`).join(', ')
    return `sessions: ${stages || 'none'} | model calls: ${calls} | sampled tokens: ${tokens}`
  }

  return {
    note: event => {
      const id = event.data.session_id
      if (typeof id !== 'string') return
      const session = sessions.get(id) ?? { status: 'QUEUED', calls: 0, tokens: 0 }
      sessions.set(id, session)
      const before = session.status
      if (typeof event.data.status === 'string') session.status = event.data.status
      if (typeof event.data.calls === 'number') session.calls = event.data.calls
      if (typeof event.data.sampled_tokens === 'number') session.tokens = event.data.sampled_tokens
      const text = line()
      if (text === shown || (!interactive && before === session.status)) return
      shown = text
      stream.write(interactive ? `\r\u001b[2K${text}` : `${text}\n`)
    },
    end: () => {
      if (interactive && shown !== '') stream.write('\r\u001b[2K')
    },
  }
}
