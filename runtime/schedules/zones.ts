import type { Schedule } from '../../shared/wire/runtime/schedule.ts'
import { readCron } from './cron-pattern.ts'
import { nextFire } from './next-fire.ts'
import type { Next } from './windows.ts'
import { zoneOffset } from './zone.ts'

export type Zones = ReturnType<typeof scheduleZones>

/** In which zone a schedule's hours are: its own, else the deployment's, else UTC. */
export function scheduleZones(defaultZone: string | undefined) {
  if (defaultZone !== undefined && zoneOffset(defaultZone) === undefined) {
    throw new RangeError(`"${defaultZone}" is no time zone: expected an IANA name such as Europe/Berlin`)
  }
  const fallback = defaultZone ?? 'UTC'
  return {
    fallback,
    of: (timezone: string | null): string => timezone ?? fallback,
    sourceOf(timezone: string | null): Schedule['timezoneSource'] {
      if (timezone !== null) return 'schedule'
      return defaultZone === undefined ? 'utc' : 'deployment'
    },
    /** The firings of a schedule that was checked when it was stored; it throws where this host has lost the zone. */
    firingsOf({ cronExpr, timezone }: { cronExpr: string; timezone: string | null }): Next {
      const pattern = readCron(cronExpr)
      if (typeof pattern === 'string') throw new RangeError(pattern)
      const zone = timezone ?? fallback
      const offsetAt = zoneOffset(zone)
      if (offsetAt === undefined) throw new RangeError(`"${zone}" is no time zone that this host knows`)
      return afterMs => nextFire(pattern, offsetAt, afterMs)
    },
  }
}
