import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { SealInput } from '../runs/sealed-input.ts'
import type { RunService } from '../runs/service.ts'
import type { RunStore } from '../runs/store.ts'
import type { Records } from '../vault/records.ts'
import { type ScheduledAgent, type WindowFirerDeps, windowFirer } from './fire-windows.ts'
import type { SchedulesDeps } from './route.ts'
import { type Scanner, scanner } from './scanner.ts'
import { scheduleService } from './service.ts'
import { scheduleStore } from './store.ts'
import type { Zones } from './zones.ts'

export interface SchedulingOptions {
  db: Db
  records: Records
  log: Log
  clock: Clock
  metrics: Metrics
  newId: () => string
  zones: Zones
  runs: Pick<RunStore, 'createForWindows'>
  service: Pick<RunService, 'start'>
  findAgent: (tenantId: string, name: string) => Promise<ScheduledAgent | undefined>
  admits: WindowFirerDeps['admits']
  sealInput: SealInput
  dayOf: WindowFirerDeps['dayOf']
  refused?: WindowFirerDeps['refused'] | undefined
}

export interface Scheduling {
  schedules: SchedulesDeps
  /** To be called once the store is ready. */
  start(options: { timers: boolean }): Promise<void>
  /** For hosts without timers: what is due by now. */
  fireDue(): Promise<void>
  stop(): Promise<void>
}

/** What keeps a tenant from being deleted. */
export const SCHEDULE_HOLDINGS = [{ what: 'schedules', rows: 'select 1 from schedules where tenant_id = ?1' }]

/** Schedules, put together: the routes, and what fires them. */
export function assembleSchedules(options: SchedulingOptions): Scheduling {
  const { db, log, clock, metrics, newId, zones, runs, findAgent, sealInput } = options
  const { now } = clock
  const store = scheduleStore(db, options.records, zones, log)
  const fire = windowFirer({
    store,
    runs,
    zones,
    findAgent,
    sealInput,
    now,
    newId,
    log,
    admits: options.admits,
    dayOf: options.dayOf,
    refused: options.refused ?? (() => []),
    fires: metrics.counter('waybill_schedule_fires_total', 'Windows of schedules, by what became of them.'),
    lagSeconds: metrics.histogram('waybill_schedule_lag_seconds', 'Time from a window to the run that it started.'),
  })
  const scan: Scanner = scanner({ fire, moveByClock: () => service.moveByClock(), store, clock, log })
  const service = scheduleService({
    db,
    store,
    zones,
    runs: options.service,
    now,
    newId,
    changed: scan.wake,
    findAgent,
    sealInput,
  })
  return {
    schedules: { store, service, zones, now },
    async start({ timers }) {
      await service.moveByDefault()
      await service.moveByClock()
      if (timers) scan.start()
    },
    fireDue: scan.once,
    stop: scan.stop,
  }
}
