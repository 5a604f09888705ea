/** How far a zone's wall clock is ahead of UTC at an instant, in milliseconds. */
export type OffsetAt = (instantMs: number) => number

const MOST_KEPT = 1000
const kept = new Map<string, OffsetAt>()

/**
 * The offsets of an IANA zone as the host's own tables have them; undefined for a name that is none. Plain offsets such as
 * `+02:00`, which newer hosts read as zones too, are none: they never change, and what is asked for here is a place.
 */
export function zoneOffset(name: string): OffsetAt | undefined {
  // Without the host's tables, which stay in memory once they are asked.
  if (name === 'UTC') return () => 0
  const known = kept.get(name)
  if (known !== undefined) return known
  if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name)) return undefined
  const made = readZone(name)
  if (made === undefined) return undefined
  // A name may be written in many cases; what is kept stays bounded all the same.
  if (kept.size >= MOST_KEPT) kept.clear()
  kept.set(name, made)
  return made
}

function readZone(timeZone: string): OffsetAt | undefined {
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch {
    return undefined
  }
  return instantMs => {
    const at = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 }
    for (const { type, value } of format.formatToParts(instantMs)) {
      if (Object.hasOwn(at, type)) at[type as keyof typeof at] = Number(value)
    }
    const wall = Date.UTC(at.year, at.month - 1, at.day, at.hour, at.minute, at.second)
    return wall - Math.floor(instantMs / 1000) * 1000
  }
}
