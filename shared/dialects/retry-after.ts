import type { UpstreamError } from './candidate.ts'

/** Waits beyond this are not believed. */
export const MAX_WAIT_MS = 3_600_000
/** IMF-fixdate and the two older forms of RFC 9110 section 5.6.7 all open with the name of a day. */
const HTTP_DATE = /^(Mon|Tues?|Wed(nes)?|Thu(rs)?|Fri|Sat(ur)?|Sun)(day)?,? /
const NUMBER = /^\d+(\.\d+)?$/

type Header = (name: string) => string | null | undefined

/**
 * How long an upstream asks us to wait; undefined when it does not say or says something absurd (then the caller's default
 * holds).
 */
export function retryAfterMs(header: Header, now: Date, error?: UpstreamError | null): number | undefined {
  const named = namedWaitMs(header, now, error)
  return named !== undefined && named <= MAX_WAIT_MS ? named : undefined
}

/**
 * The wait that an upstream names, however long. `retry-after-ms` wins over `retry-after`, and both over the error. A date there is of the
 * upstream's clock, and so is `date`.
 */
export function namedWaitMs(header: Header, now: Date, error?: UpstreamError | null): number | undefined {
  const ms = headerMs(header, now) ?? error?.waitMs
  return ms !== undefined && ms >= 0 ? Math.ceil(ms) : undefined
}

function headerMs(header: Header, now: Date): number | undefined {
  const exact = header('retry-after-ms')?.trim()
  if (exact !== undefined && exact !== '') return NUMBER.test(exact) ? Number(exact) : Number.NaN
  const value = header('retry-after')?.trim()
  if (value === undefined || value === '') return undefined
  if (NUMBER.test(value)) return Number(value) * 1000
  if (!HTTP_DATE.test(value)) return undefined
  const said = Date.parse(header('date') ?? '')
  return Date.parse(value) - (Number.isNaN(said) ? now.getTime() : said)
}
