import { runStore } from '../../runtime/runs/store.ts'
import { windowFirer } from '../../runtime/schedules/fire-windows.ts'
import { scanner } from '../../runtime/schedules/scanner.ts'
import { scheduleStore } from '../../runtime/schedules/store.ts'
import { scheduleZones } from '../../runtime/schedules/zones.ts'
import { clearRecords } from '../../runtime/vault/records.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { createLog, silentLog } from '../../shared/log/log.ts'
import { createMetrics } from '../../shared/metrics/metrics.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { manifest } from '../../shared/wire/runtime/manifest.ts'

/**
 * An instance that fires the schedules of a store until it is stopped. With `kill n before` or `kill n after`, it kills
 * itself around the n-th transaction that takes windows.
 */
const [path = '', , at = '0', when = ''] = process.argv.slice(2)
const db = await openDb(path)
let taken = 0

const zones = scheduleZones(undefined)
const store = scheduleStore(db, clearRecords, zones, silentLog())
const runs = runStore(
  {
    ...db,
    async write(statements) {
      taken++
      if (taken === Number(at) && when === 'before') process.kill(process.pid, 'SIGKILL')
      const results = await db.write(statements)
      if (taken === Number(at) && when === 'after') process.kill(process.pid, 'SIGKILL')
      return results
    },
  },
  clearRecords,
)
const log = createLog({
  filter: { all: 'warn', byTarget: new Map() },
  write: line => process.stderr.write(`${line}\n`),
})
const metrics = createMetrics()
const scan = scanner({
  moveByClock: async () => undefined,
  store,
  clock: systemClock,
  log,
  fire: windowFirer({
    store,
    runs,
    zones,
    now: systemClock.now,
    newId: uuidv7,
    log,
    admits: async () => ({ statements: [], exceeded: false }),
    refused: () => [],
    dayOf: ms => new Date(ms).toISOString().slice(0, 10),
    sealInput: async () => undefined,
    findAgent: async () => ({ agentId: 'agent', versionId: 'version', manifest: manifest.parse({}) }),
    fires: metrics.counter('fires', 'Windows.'),
    lagSeconds: metrics.histogram('lag', 'Lag.'),
  }),
})
process.once('SIGTERM', () => void scan.stop().then(() => db.close()))
scan.start()
process.stdout.write('ready\n')
