import { Hono } from 'hono'
import { jsonBody, sameRecord } from '../../shared/http/validate.ts'
import { repeated } from '../../shared/wire/read-only.ts'
import { emptyBody, pageQuery } from '../../shared/wire/runtime/conventions.ts'
import { previewQuery, scheduleCreate, scheduleListQuery, scheduleUpdate } from '../../shared/wire/runtime/schedule.ts'
import type { Principal, RuntimeHttpEnv } from '../http/http-env.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { readQuery } from '../http/read-query.ts'
import { createdRun } from '../runs/created-run.ts'
import type { SchedulesDeps } from './deps.ts'
import { previewFires } from './preview.ts'
import { type ScheduleRow, toSchedule } from './schedule.ts'
import { readTiming } from './service.ts'

/** Runs that start by the clock (docs/spec/runtime.md §9). */
export function schedulesRoute({ store, service, zones, idempotent, now, maxBodyBytes }: SchedulesDeps) {
  async function find(principal: Principal, id: string): Promise<ScheduleRow> {
    return own(principal, await store.get(id), 'schedule', id)
  }

  return new Hono<RuntimeHttpEnv>()
    .post(
      '/v1/schedules',
      jsonBody(scheduleCreate, maxBodyBytes),
      idempotent({ again: async (c, id) => c.json(toSchedule(await find(c.get('principal'), id), zones), 201) }),
      async c => {
        const made = await service.create(c.get('principal').tenantId, c.req.valid('json'), c.get('idempotency'))
        return c.json(toSchedule(made, zones), 201)
      },
    )
    .get('/v1/schedules', async c => {
      const query = readQuery(c, scheduleListQuery)
      const page = pageOf(c, query)
      const rows = await store.list(c.get('principal').tenantId, query, page)
      const cut = page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id }))
      return c.json(cut.map(row => toSchedule(row, zones)))
    })
    .get('/v1/schedules/preview', c => {
      const { cronExpr, timezone, count, from } = readQuery(c, previewQuery)
      const { pattern, offsetAt } = readTiming(cronExpr, timezone ?? zones.fallback)
      const afterMs = from === undefined ? now().getTime() : Date.parse(from) - 1
      return c.json(previewFires(pattern, offsetAt, { afterMs, count }))
    })
    .get('/v1/schedules/:id', async c => c.json(toSchedule(await find(c.get('principal'), c.req.param('id')), zones)))
    .put('/v1/schedules/:id', jsonBody(scheduleUpdate, maxBodyBytes), async c => {
      const row = await find(c.get('principal'), c.req.param('id'))
      const given = c.req.valid('json')
      const known = toSchedule(row, zones)
      await sameRecord(given, () => known)
      // The zone of a record is the one in effect: sent back with its source, it is no zone of its own.
      const lent = repeated(given)?.timezoneSource !== undefined && row.timezone === null
      const change = lent && given.timezone === known.timezone ? { ...given, timezone: null } : given
      return c.json(toSchedule(await service.update(row.id, change), zones))
    })
    .delete('/v1/schedules/:id', async c => {
      const { id } = await find(c.get('principal'), c.req.param('id'))
      if (!(await store.remove(id))) throw notFound('schedule', id)
      return c.body(null, 204)
    })
    .post('/v1/schedules/:id/pause', jsonBody(emptyBody, maxBodyBytes), async c => {
      const { id } = await find(c.get('principal'), c.req.param('id'))
      return c.json(toSchedule(await service.update(id, { enabled: false }), zones))
    })
    .post('/v1/schedules/:id/resume', jsonBody(emptyBody, maxBodyBytes), async c => {
      const { id } = await find(c.get('principal'), c.req.param('id'))
      return c.json(toSchedule(await service.update(id, { enabled: true }), zones))
    })
    .post('/v1/schedules/:id/run', jsonBody(emptyBody, maxBodyBytes), async c => {
      const schedule = await find(c.get('principal'), c.req.param('id'))
      return c.json(createdRun(await service.run(schedule)), 201)
    })
    .get('/v1/schedules/:id/fires', async c => {
      const page = pageOf(c, readQuery(c, pageQuery))
      const { id } = await find(c.get('principal'), c.req.param('id'))
      const rows = await store.fires(id, page)
      return c.json(page.cut(rows, ({ windowMs }) => ({ at: windowMs, id })).map(({ fire }) => fire))
    })
}
