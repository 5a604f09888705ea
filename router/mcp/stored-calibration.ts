import { type Db, rowsOf } from '../../shared/sql/db.ts'
import type { CalibrationState } from '../../shared/wire/router/calibration.ts'
import { describeCalibration } from '../calibrate/calibration-reads.ts'
import { type EntryRow, entriesOf, toEntry } from '../calibrate/calibration-store.ts'
import { lastConfig } from '../calibrate/route-cache.ts'

/** Where the thresholds of one tenant stand, by the config that a router used last on this store. */
export async function storedCalibration(db: Db, tenantId: string): Promise<CalibrationState[]> {
  const config = await lastConfig(db)
  if (config === undefined) return []
  const entries = rowsOf<EntryRow>(await db.execute(entriesOf(tenantId))).map(toEntry)
  const kept = new Map(entries.map(({ routeFp, kept }) => [routeFp, kept]))
  return config.routes.flatMap(({ fingerprint, serve_threshold, rungs, scores = true }, ix) => {
    const own = kept.get(fingerprint)
    // A route that only observes has no threshold; of what an older version kept, only a route with outcomes is known to have one.
    const decides = rungs === undefined ? own !== undefined : rungs > 0
    const route = { ix, serveThreshold: serve_threshold, scores }
    return decides ? [describeCalibration({ tenantId, route, kept: own, settings: config.calibration })] : []
  })
}
