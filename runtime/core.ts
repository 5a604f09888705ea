import type { EgressClient } from '../shared/http/outbound/egress-client.ts'
import { uuidsBy } from '../shared/ids/uuid-v7.ts'
import { type Log, silentLog } from '../shared/log/log.ts'
import { createMetrics, type Metrics } from '../shared/metrics/metrics.ts'
import { type CurveKeys, portableCurveKeys } from '../shared/sign/curve-keys.ts'
import { sha256 as portableSha256, type Sha256 } from '../shared/sign/sha256.ts'
import { type Db, STORE_STUCK } from '../shared/sql/db.ts'
import { type ServerClock, serverClock } from '../shared/sql/server-clock.ts'
import { type Clock, systemClock } from '../shared/time/clock.ts'
import { VERSION } from '../shared/version.ts'
import { type DayOf, dayIn } from './budgets/day.ts'
import type { RuntimeOptions } from './options.ts'
import { scheduleZones, type Zones } from './schedules/zones.ts'
import { checkMasterKey, OTHER_NODE } from './vault/canary.ts'
import { openDataKeys, refuseSealed } from './vault/data-keys.ts'
import { masterKey } from './vault/master-key.ts'
import { portableCipher } from './vault/portable-cipher.ts'
import { clearRecords, type Records, recordsLater, sealedRecords } from './vault/records.ts'
import { type Sealing, vault } from './vault/vault.ts'

/** What every feature is assembled from. */
export interface Core {
  db: Db
  log: Log
  /** That of the database server where there is one, since other processes may have the same store. */
  clock: Clock
  /** To be put right by the server; undefined for a file. */
  serverClock: ServerClock | undefined
  metrics: Metrics
  sha256: Sha256
  curveKeys: CurveKeys
  newId: () => string
  /** Seals and opens the data of runs, once the store is ready. */
  records: Records
  /** Opens the vault of secrets; it resolves to undefined without a master key. */
  sealing: Sealing
  /** Whose hours schedules keep. */
  zones: Zones
  /** By which days budgets and usage are counted. */
  dayOf: DayOf
  egress: EgressClient | undefined
  publicUrl: string | undefined
}

/** What the start of a service does with the keys of its store. */
interface StoreKeys {
  /** Undefined without a key. */
  check: (() => Promise<void>) | undefined
  open(): Promise<Records>
  use(records: Records): void
}

/** A server that takes no writes any more has to be restarted, which only its operator can do. */
function tellStuckWrites({ writes }: Db, log: Log, metrics: Metrics): void {
  metrics
    .gauge('waybill_store_stuck', '1 where the database server answers reads and takes no writes.')
    .read(() => (writes?.stuck ? 1 : 0))
  writes?.onChange(stuck => {
    if (stuck) log.error(STORE_STUCK, { code: 'store_stuck' })
    else log.warn('the database server takes writes again')
  })
}

export function createCore(options: RuntimeOptions): { core: Core; keys: StoreKeys } {
  const {
    db,
    log = silentLog(),
    clock: host = systemClock,
    metrics = createMetrics(),
    sha256 = portableSha256,
  } = options
  const ofServer = options.learnt?.serverClock ?? (db.kind === 'remote' ? serverClock(db, host) : undefined)
  const clock = ofServer ?? host
  metrics.gauge('waybill_build_info', 'The running version.').set(1, { version: VERSION })
  tellStuckWrites(db, log, metrics)
  // A node has no master key: it seals under a key that follows from its own, or from that of its pool where the store is shared.
  const sealKey = options.masterKey ?? options.worker?.sealKey
  const box = sealKey && masterKey(sealKey).then(key => vault(key))
  // A key of the wrong length is reported by the readiness check.
  box?.catch(() => undefined)
  const otherKey = options.worker && OTHER_NODE
  const later = recordsLater()
  const zones = scheduleZones(options.defaultTimezone)
  return {
    core: {
      db,
      log,
      clock,
      serverClock: ofServer,
      metrics,
      sha256,
      curveKeys: options.curveKeys ?? portableCurveKeys,
      newId: uuidsBy(clock),
      records: later.records,
      sealing: async () => box,
      zones,
      dayOf: dayIn(zones.fallback),
      egress: options.egress,
      publicUrl: options.publicUrl,
    },
    keys: {
      check: box && (async () => checkMasterKey(db, await box, otherKey)),
      async open() {
        if (box === undefined) {
          await refuseSealed(db, 'give the master key it was sealed under')
          return clearRecords
        }
        const keys = await openDataKeys(db, await box, clock.now().getTime(), otherKey)
        return sealedRecords(options.cipher ?? portableCipher, keys)
      },
      use: later.use,
    },
  }
}
