import { Cron } from 'croner'

/** What a cron expression says about wall clocks, without any zone. */
export interface CronPattern {
  /** The first wall-clock time after this one that matches; undefined: there is none any more. */
  nextWall(after: number): number | undefined
  /** The hour field is `*`: the pattern counts hours as they pass, not by their names on the clock. */
  everyHour: boolean
}

const NICKNAME = /^@(?:yearly|annually|monthly|weekly|daily|midnight|hourly)$/i

/**
 * Reads 5 fields, or 6 with leading seconds, or a nickname. A text that is none, or one that never matches, comes back as
 * the complaint. The library parses and matches; it is handed UTC, because its own zone mode drops or doubles lists and
 * steps where clocks change (docs/spec/runtime.md §9).
 */
export function readCron(expression: string): CronPattern | string {
  const text = expression.trim()
  const fields = text.split(/\s+/)
  const nickname = NICKNAME.test(text)
  // A date, which the library would also take, is one field.
  if (!nickname && fields.length !== 5 && fields.length !== 6) {
    return 'expected a cron expression of 5 fields, or 6 with leading seconds, such as "30 2 * * *"'
  }
  let cron: Cron
  try {
    cron = new Cron(text, { utcOffset: 0, mode: '5-or-6-parts' })
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error)
    return `expected a cron expression such as "30 2 * * *": ${reason}`
  }
  const nextWall = (after: number) => cron.nextRun(new Date(after))?.getTime()
  if (nextWall(ANY_DAY) === undefined) return 'this expression names a day that no calendar has, so it would never fire'
  const hour = nickname ? (text.toLowerCase() === '@hourly' ? '*' : '0') : fields[fields.length - 4]
  return { nextWall, everyHour: hour === '*' || hour === '?' }
}

/** Whether a pattern ever matches does not depend on the day it is asked. */
const ANY_DAY = Date.UTC(2026, 0, 1)
