import t from 'tap'
import { RolloutError } from '../../../src/domain/errors.js'
import { EVENTS } from '../../../src/observability/events.js'
import { createLogger, type LogLevel } from '../../../src/observability/logger.js'

function recorded(level: LogLevel) {
  const lines: string[] = []
  return {
    log: createLogger({ level, fields: { system: 'main' }, destination: { write: line => lines.push(line) } }),
    lines,
  }
}

t.test('an event is one JSON line with time, level, event and its fields', async t => {
  const { log, lines } = recorded('info')
  log.info(EVENTS.threadStart, { thread: 'proxy-1' })
  t.equal(lines.length, 1)
  t.ok(lines[0]?.endsWith('}\n'))
  const { time, ...rest } = JSON.parse(lines[0] ?? '')
  t.strictSame(rest, { level: 'info', system: 'main', event: 'thread-start', thread: 'proxy-1' })
  t.equal(new Date(time).toISOString(), time)
})

t.test('what is below the level is not written', async t => {
  const { log, lines } = recorded('warn')
  log.debug(EVENTS.actorStart)
  log.info(EVENTS.actorStart)
  log.warn(EVENTS.actorStart)
  log.error(EVENTS.actorStart)
  t.strictSame(
    lines.map(line => JSON.parse(line).level),
    ['warn', 'error'],
  )
})

t.test('a cause is written with its code', async t => {
  const { log, lines } = recorded('info')
  log.error(EVENTS.actorCrash, { cause: new RolloutError('ACTOR_DEAD', 'gone', { details: { actor: 'x' } }) })
  log.error(EVENTS.actorCrash, { cause: new TypeError('bug') })
  t.strictSame(
    lines.map(line => JSON.parse(line).cause),
    [
      { code: 'ACTOR_DEAD', message: 'gone', details: { actor: 'x' } },
      { code: 'INTERNAL_BUG', message: 'bug' },
    ],
  )
})

t.test('a child logger adds its fields to each line', async t => {
  const { log, lines } = recorded('info')
  log.child({ actor: 'main:/stages/' }).info(EVENTS.actorStart)
  t.match(JSON.parse(lines[0] ?? ''), { system: 'main', actor: 'main:/stages/' })
})
