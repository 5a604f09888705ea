/** The calendar day of a moment in a zone, `2026-01-31`: what budgets and usage are counted by. */
export type DayOf = (ms: number) => string

const MINUTE_MS = 60_000

/** Zones change their offset at whole minutes, so a minute is asked for once. The host's tables of zones take 7 MB: UTC does without. */
export function dayIn(timeZone: string): DayOf {
  const dayOf = timeZone === 'UTC' ? (ms: number) => new Date(ms).toISOString().slice(0, 10) : inZone(timeZone)
  let known = { minute: Number.NaN, day: '' }
  return ms => {
    const minute = Math.floor(ms / MINUTE_MS)
    if (minute !== known.minute) known = { minute, day: dayOf(minute * MINUTE_MS) }
    return known.day
  }
}

function inZone(timeZone: string): DayOf {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' })
  return ms => format.format(ms)
}
