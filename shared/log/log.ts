import { type Redactor, redactor } from './redact.ts'

export const LEVELS = ['error', 'warn', 'info', 'debug', 'trace'] as const
export type Level = (typeof LEVELS)[number]
type Threshold = Level | 'off'

export interface LogFilter {
  all: Threshold
  byTarget: ReadonlyMap<string, Threshold>
}

export type Fields = Record<string, unknown>

export interface Log {
  error(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  info(message: string, fields?: Fields): void
  debug(message: string, fields?: Fields): void
  trace(message: string, fields?: Fields): void
  /** The same log under another target name, filtered on its own. */
  target(name: string): Log
  redact: Redactor
}

export interface LogOptions {
  filter: LogFilter
  write: (line: string) => void
  now?: () => Date
  redact?: Redactor
}

/**
 * Reads a filter: one level (`error` … `trace`, `off`) or a list such as `warn,router.store=debug`.
 * Undefined when any part does not read.
 */
export function parseLogFilter(text: string): LogFilter | undefined {
  let all: Threshold = 'info'
  const byTarget = new Map<string, Threshold>()
  for (const part of text.split(',').map(piece => piece.trim())) {
    const [name = '', level] = part.split('=')
    const threshold = (level ?? name).toLowerCase()
    if (threshold !== 'off' && !(LEVELS as readonly string[]).includes(threshold)) return undefined
    if (level === undefined) all = threshold as Threshold
    else byTarget.set(name.replaceAll('::', '.'), threshold as Threshold)
  }
  return { all, byTarget }
}

/**
 * One JSON object per line: time, level, target, message, then the fields, redacted. Where an error comes from in the source is a matter of
 * faults of the service: what is foreseen, such as a peer that is away, has its stack only where `debug` is asked for.
 */
export function createLog({ filter, write, now = () => new Date(), redact = redactor() }: LogOptions): Log {
  function forTarget(name: string): Log {
    const limit = rank(filter.byTarget.get(name) ?? filter.all)
    const isDebugged = limit >= rank('debug')
    const at = (level: Level) => (message: string, fields?: Fields) => {
      if (rank(level) > limit) return
      write(
        redact.json(
          { ...fields, time: now().toISOString(), level, target: name, message },
          isDebugged || level === 'error',
        ),
      )
    }
    return {
      error: at('error'),
      warn: at('warn'),
      info: at('info'),
      debug: at('debug'),
      trace: at('trace'),
      target: forTarget,
      redact,
    }
  }
  return forTarget('waybill')
}

/** For a library used inside another program: says nothing until it is given a log. */
export function silentLog(): Log {
  return createLog({ filter: { all: 'off', byTarget: new Map() }, write: () => undefined })
}

function rank(level: Threshold): number {
  return level === 'off' ? -1 : LEVELS.indexOf(level)
}

const MINUTE_MS = 60_000

export type RateLimited = (kind: string, say: () => void) => void

/** What a message says of those that are left out. */
export const REPEATS_OMITTED = 'further ones within a minute are not logged'

/** Lets a message of each kind be said at most once a minute: what fails for every record must not fill a disk with lines. */
export function rateLimitedLog(clock: { monotonic(): number }): RateLimited {
  const lastEmitted = new Map<string, number>()
  return (kind, say) => {
    const now = clock.monotonic()
    const before = lastEmitted.get(kind)
    if (before !== undefined && now - before < MINUTE_MS) return
    lastEmitted.set(kind, now)
    say()
  }
}

/** Control characters, line ends, marks of direction and what is not drawn, but for what joins letters and emoji. */
const UNSEEN = /(?!\u200c|\u200d|\ufe0e|\ufe0f)[\p{Cc}\p{Cf}\p{DI}\p{Zl}\p{Zp}]/gu

/** One line for a terminal. It may quote what a stranger wrote: nothing of it moves the cursor or turns the text around. */
export function visible(text: string): string {
  return text.replace(UNSEEN, found => `\\u{${found.codePointAt(0)?.toString(16)}}`)
}
