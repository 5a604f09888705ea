import { UsageError } from 'clipanion'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { type Entry, type EntryRow, entriesOf, putEntry, storedPairs, toEntry } from '../calibrate/calibration-store.ts'
import { type CalibrationReport, calibrationReport, type ReportMethod, type ReportPair } from '../calibrate/report.ts'
import { lastConfig, type StoredConfig } from '../calibrate/route-cache.ts'
import { calibrationTable } from '../config/learning-tables.ts'
import { resolveCalibration } from '../config/resolve-settings.ts'
import { openStoreToRead, openStoreToWrite } from '../host/open-store.ts'

export interface CalibrateAsk {
  vars: Readonly<Record<string, string | undefined>>
  address: string | undefined
  tenant: string | undefined
  route: number | undefined
  alpha: number | undefined
  delta: number | undefined
  minN: number | undefined
  method: ReportMethod
  holdout: number
  apply: boolean
  unpin: boolean
}

export interface RouteReport extends CalibrationReport {
  tenant_id: string
  /** Its place in the config that was used last; null when it is no longer in it. */
  route_ix: number | null
  route_fp: string
  pinned: number | null
  /** Scored answers left out, because a failure of theirs may still be reported. */
  too_young: number
  feedback_delay_s: number
}

export async function runCalibrate(ask: CalibrateAsk): Promise<RouteReport[]> {
  const changes = ask.apply || ask.unpin
  const { vars, address, tenant } = ask
  const db = changes ? await openStoreToWrite(vars, address, tenant) : await openStoreToRead(vars, address, tenant)
  try {
    const config = await lastConfig(db)
    const wanted = fingerprintOf(config, ask.route)
    const entries = rowsOf<EntryRow>(await db.execute(entriesOf(ask.tenant))).map(toEntry)
    const reports: RouteReport[] = []
    for (const entry of entries) {
      if (wanted === undefined || entry.routeFp === wanted) reports.push(await reportOf(db, entry, config, ask))
    }
    return reports
  } finally {
    db.close()
  }
}

function fingerprintOf(config: StoredConfig | undefined, route: number | undefined): string | undefined {
  if (route === undefined) return undefined
  const found = config?.routes[route]
  if (found !== undefined) return found.fingerprint
  const last = (config?.routes.length ?? 0) - 1
  throw new UsageError(
    last < 0
      ? 'No router with routes has used this store yet, so --route names none.'
      : `The config that was used last has the routes 0 to ${last}; --route ${route} names none of them.`,
  )
}

async function reportOf(
  db: Db,
  entry: Entry,
  config: StoredConfig | undefined,
  ask: CalibrateAsk,
): Promise<RouteReport> {
  const { tenantId, routeFp } = entry
  const settings = config?.calibration ?? resolveCalibration(calibrationTable.parse({}))
  const upToMs = Date.now() - settings.feedbackDelayMs
  const pairs: ReportPair[] = []
  let tooYoung = 0
  for await (const { answeredMs = 0, ...pair } of storedPairs(db, tenantId, routeFp)) {
    if (answeredMs > upToMs) tooYoung++
    else pairs.push(pair)
  }
  const alpha = ask.alpha ?? settings.alpha
  const report = calibrationReport(pairs, {
    alpha,
    method: ask.method,
    holdout: ask.holdout,
    delta: ask.delta ?? settings.delta,
    minN: ask.minN ?? settings.minN,
    bet: Math.min(settings.bet, 0.5 / (1 - alpha)),
  })
  const place = config?.routes.findIndex(({ fingerprint }) => fingerprint === routeFp) ?? -1
  const pinned = await pin(db, entry, ask.unpin ? null : ask.apply && report.certified ? report.threshold : undefined)
  return {
    tenant_id: tenantId,
    route_ix: place < 0 ? null : place,
    route_fp: routeFp,
    pinned,
    too_young: tooYoung,
    feedback_delay_s: settings.feedbackDelayMs / 1000,
    ...report,
  }
}

const MAX_TRIES = 20

/** Sets or takes back a pin; undefined leaves it. A router that writes at the same time is let through and the pin set after it. */
async function pin(db: Db, first: Entry, to: number | null | undefined): Promise<number | null> {
  if (to === undefined || to === first.kept.pinned) return first.kept.pinned
  for (let entry = first, tried = 1; ; tried++) {
    try {
      await db.write([putEntry({ ...entry, kept: { ...entry.kept, pinned: to } }, new Date())])
      return to
    } catch (error) {
      if (tried >= MAX_TRIES || !/constraint/i.test(String(error))) throw error
      const answer = await db.execute({
        sql: 'select tenant_id, route_fp, version, state from calibration where tenant_id = ? and route_fp = ?',
        args: [entry.tenantId, entry.routeFp],
      })
      const [row] = rowsOf<EntryRow>(answer)
      if (row === undefined) throw error
      entry = toEntry(row)
    }
  }
}
