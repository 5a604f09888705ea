import type { Log } from '../../shared/log/log.ts'
import { type DamagedRowError, type Db, readRows, rowsOf } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { changedSince, type Entry, type EntryRow, readWindow, toEntry } from './calibration-store.ts'
import type { PairWindow } from './pair-window.ts'

/** How long another process's change may stay unseen by one that only serves. */
const STALE_MS = 1000

export type VersionCell = [tenantId: string, routeFp: string, version: number]

export interface CalibrationCacheDeps {
  db: Db
  clock: Clock
  log: Log
}

export type CalibrationCache = ReturnType<typeof calibrationCache>

/**
 * Every calibration of the store, in memory, where a request asks for its threshold. Several processes may change the store: each asks
 * for what is newer than it has seen before it writes, and otherwise at most a second after it was last asked.
 */
export function calibrationCache({ db, clock, log }: CalibrationCacheDeps) {
  const entries = new Map<string, Entry>()
  /** Routes whose row cannot be read: their thresholds stay where they start, and nothing is learned over the row. */
  const damaged = new Map<string, DamagedRowError>()
  const windows = new Map<string, PairWindow>()
  // Of what was read from the store, not of what was written: another process's change may lie between two of this one.
  let seen = 0
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  const keyOf = (tenantId: string, routeFp: string) => `${tenantId} ${routeFp}`

  /** Takes rows of `changedSince(seen)`. */
  function take(rows: readonly EntryRow[]): void {
    readAt = clock.monotonic()
    const read = readRows(rows, toEntry, (error, { tenant_id, route_fp, version }) => {
      log.error('a calibration is left out', { error })
      seen = Math.max(seen, Number(version))
      const key = keyOf(tenant_id, route_fp)
      damaged.set(key, error)
      entries.delete(key)
      windows.delete(key)
    })
    for (const entry of read) {
      seen = Math.max(seen, entry.version)
      const key = keyOf(entry.tenantId, entry.routeFp)
      damaged.delete(key)
      if ((entries.get(key)?.version ?? 0) >= entry.version) continue
      entries.set(key, entry)
      windows.delete(key)
    }
  }

  async function refresh(): Promise<void> {
    take(rowsOf(await db.execute(changedSince(seen))))
  }

  /** A store that cannot be read now leaves what was known. */
  function caughtUp(): Promise<void> {
    reading ??= refresh()
      .catch((error: unknown) => {
        readAt = clock.monotonic()
        log.warn('the calibration could not be read again; the previous one is used', { error })
      })
      .finally(() => {
        reading = undefined
      })
    return reading
  }

  return {
    refresh,
    /** The version up to which the store was read. */
    seen: () => seen,
    /** The versions of all entries above it, as of a moment: reads them if one is news. */
    async heard(versions: readonly VersionCell[]): Promise<void> {
      const hasChanged = versions.some(
        ([tenant, route, version]) => (entries.get(keyOf(tenant, route))?.version ?? 0) < version,
      )
      if (hasChanged) await refresh()
      else readAt = clock.monotonic()
    },
    caughtUp,
    /** For a reader that cannot wait: asks in the background when it is time. */
    refreshSoon(): void {
      if (reading === undefined && clock.monotonic() - readAt >= STALE_MS) void caughtUp()
    },
    get: (tenantId: string, routeFp: string): Entry | undefined => entries.get(keyOf(tenantId, routeFp)),
    /** For who would write it: fails where the row is damaged. */
    toLearn(tenantId: string, routeFp: string): Entry | undefined {
      const key = keyOf(tenantId, routeFp)
      const wrong = damaged.get(key)
      if (wrong) throw wrong
      return entries.get(key)
    },
    all: (): Iterable<Entry> => entries.values(),
    async window({ tenantId, routeFp, kept }: Entry, size: number): Promise<PairWindow> {
      const key = keyOf(tenantId, routeFp)
      const known = windows.get(key)
      if (known?.size === size) return known
      const read = await readWindow(db, { tenantId, routeFp, size, places: kept.places })
      windows.set(key, read)
      return read
    },
    /** After a commit. */
    put(entry: Entry, window: PairWindow): void {
      const key = keyOf(entry.tenantId, entry.routeFp)
      if ((entries.get(key)?.version ?? 0) > entry.version) return
      entries.set(key, entry)
      windows.set(key, window)
    },
    /** After anything unclear: windows are read again. */
    forget(): void {
      windows.clear()
    },
  }
}
