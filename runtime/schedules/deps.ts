import type { Idempotent } from '../http/idempotent.ts'
import type { ScheduleService } from './service.ts'
import type { ScheduleStore } from './store.ts'
import type { Zones } from './zones.ts'

export interface SchedulesDeps {
  store: Pick<ScheduleStore, 'get' | 'list' | 'remove' | 'fires'>
  service: Pick<ScheduleService, 'create' | 'update' | 'run'>
  zones: Zones
  idempotent: Idempotent
  now: () => Date
  maxBodyBytes: number
}
