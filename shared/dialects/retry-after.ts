/** Waits beyond this are not believed. */
const MAX_WAIT_MS = 3_600_000
/** IMF-fixdate and the two older forms of RFC 9110 section 5.6.7 all open with the name of a day. */
const HTTP_DATE = /^(Mon|Tues?|Wed(nes)?|Thu(rs)?|Fri|Sat(ur)?|Sun)(day)?,? /
const NUMBER = /^\d+(\.\d+)?$/

/**
 * How long an upstream asks us to wait; undefined when it does not say or says something absurd (then the caller's default
 * holds). `retry-after-ms` wins over `retry-after`. A date there is of the upstream's clock, and so is `date`.
 */
export function retryAfterMs(header: (name: string) => string | null | undefined, now: Date): number | undefined {
  const exact = header('retry-after-ms')?.trim()
  if (exact !== undefined && exact !== '') return believable(NUMBER.test(exact) ? Number(exact) : Number.NaN)
  const value = header('retry-after')?.trim()
  if (value === undefined || value === '') return undefined
  if (NUMBER.test(value)) return believable(Number(value) * 1000)
  if (!HTTP_DATE.test(value)) return undefined
  const said = Date.parse(header('date') ?? '')
  return believable(Date.parse(value) - (Number.isNaN(said) ? now.getTime() : said))
}

function believable(ms: number): number | undefined {
  return ms >= 0 && ms <= MAX_WAIT_MS ? Math.ceil(ms) : undefined
}
