export type Counts = Readonly<Record<string, number>>

const RENEW = 'WAYBILL_COUNTS=write npm test -- tests/counts.test.ts'

/** How much more may be counted without being told, and only where the reason is the clock of the machine. */
export type Slack = Readonly<Record<string, number>>

/** What is not as the table says, with what to do about it; undefined where all of it is. */
export function difference(name: string, was: Counts, is: Counts, slack: Slack = {}): string | undefined {
  const keys = [...new Set([...Object.keys(was), ...Object.keys(is)])]
  const changed = keys.filter(key => {
    const over = (is[key] ?? 0) - (was[key] ?? 0)
    return over < 0 || over > (slack[key] ?? 0)
  })
  if (changed.length === 0) return undefined
  const told = changed.map(key => `${key} ${is[key] ?? 0}, was ${was[key] ?? 0}`).join('; ')
  const more = changed.some(key => (is[key] ?? 0) > (was[key] ?? 0))
  return more
    ? `${name}: ${told}. It does more than it did: find the statement below that is new and take it out, or, if what it does is worth that, renew the table with ${RENEW} and say why in the commit.`
    : `${name}: ${told}. It does less than it did: renew the table with ${RENEW}, so that it stays so.`
}
