import { sameRecord } from '../../shared/http/validate.ts'
import { repeated } from '../../shared/wire/read-only.ts'
import { scheduleEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/schedules.ts'
import type { Principal } from '../http/http-env.ts'
import { keyedOperation, type Operation, operation } from '../http/operation.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { previewFires } from './next-fire.ts'
import { type ScheduleRow, toSchedule } from './schedule.ts'
import { readTiming, type ScheduleService } from './service.ts'
import type { ScheduleStore } from './store.ts'
import type { Zones } from './zones.ts'

export interface SchedulesDeps {
  store: Pick<ScheduleStore, 'get' | 'list' | 'remove' | 'fires'>
  service: Pick<ScheduleService, 'create' | 'update' | 'run'>
  zones: Zones
  now: () => Date
}

/** Runs that start by the clock (docs/spec/runtime.md §9). */
export function scheduleOperations({ store, service, zones, now }: SchedulesDeps): Operation[] {
  async function find(principal: Principal, { id }: { id: string }): Promise<ScheduleRow> {
    return own(principal, await store.get(id), 'schedule', id)
  }

  return [
    keyedOperation(
      endpoints.create,
      async ({ principal, body, idempotency }) =>
        toSchedule(await service.create(principal.tenantId, body, idempotency), zones),
      { again: async ({ principal }, id) => toSchedule(await find(principal, { id }), zones), byReference: true },
    ),
    operation(endpoints.list, async call => {
      const page = pageOf(call)
      const rows = await store.list(call.principal.tenantId, call.query, page)
      const cut = page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id }))
      return cut.map(row => toSchedule(row, zones))
    }),
    operation(endpoints.preview, ({ query: { cronExpr, timezone, count, from } }) => {
      const { pattern, offsetAt } = readTiming(cronExpr, timezone ?? zones.fallback)
      const afterMs = from === undefined ? now().getTime() : Date.parse(from) - 1
      return previewFires(pattern, offsetAt, { afterMs, count })
    }),
    operation(endpoints.get, async ({ principal, params }) => toSchedule(await find(principal, params), zones)),
    operation(endpoints.update, async ({ principal, params, body }) => {
      const row = await find(principal, params)
      const known = toSchedule(row, zones)
      await sameRecord(body, () => known)
      // The zone of a record is the one in effect: sent back with its source, it is no zone of its own.
      const lent = repeated(body)?.timezoneSource !== undefined && row.timezone === null
      const change = lent && body.timezone === known.timezone ? { ...body, timezone: null } : body
      return toSchedule(await service.update(row.id, change), zones)
    }),
    operation(endpoints.remove, async ({ principal, params }) => {
      const { id } = await find(principal, params)
      if (!(await store.remove(id))) throw notFound('schedule', id)
    }),
    operation(endpoints.pause, async ({ principal, params }) => {
      const { id } = await find(principal, params)
      return toSchedule(await service.update(id, { enabled: false }), zones)
    }),
    operation(endpoints.resume, async ({ principal, params }) => {
      const { id } = await find(principal, params)
      return toSchedule(await service.update(id, { enabled: true }), zones)
    }),
    operation(endpoints.run, async ({ principal, params }) => service.run(await find(principal, params))),
    operation(endpoints.fires, async call => {
      const page = pageOf(call)
      const { id } = await find(call.principal, call.params)
      const rows = await store.fires(id, page)
      return page.cut(rows, ({ windowMs }) => ({ at: windowMs, id })).map(({ fire }) => fire)
    }),
  ]
}
