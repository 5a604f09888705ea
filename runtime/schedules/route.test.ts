import { describe, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Fire, PreviewItem, Schedule } from '../../shared/wire/runtime/schedule.ts'
import { fixture } from '../auth/testing/fixture.ts'

async function scheduleApi(options: Parameters<typeof fixture>[0] = {}) {
  const made = await fixture({ timers: false, ...options })
  await made.call('POST', '/v1/agents', { body: { name: 'clerk' } })
  return {
    ...made,
    create: (body: object = {}, headers: Record<string, string> = {}) =>
      made.call<Schedule>('POST', '/v1/schedules', {
        headers,
        body: { agentName: 'clerk', cronExpr: '*/5 * * * *', ...body },
      }),
  }
}

const YEAR_MS = 365 * 86_400_000

describe('a clock that is set back', () => {
  it.each([true, false])(
    'times schedules anew, and fires no window twice: while the service runs: %s',
    async running => {
      const { create, call, clock, db, runtime, close } = await scheduleApi()
      const { body: every } = await create({ cronExpr: '*/5 * * * *' })
      clock.advance(56_000)
      await runtime.scheduled()
      clock.set(YEAR_MS)
      await runtime.scheduled()
      const { body: late } = await create({ cronExpr: '6 3 * * *' })
      const dueOf = async (on: typeof call, { id }: Schedule) =>
        (await on<Schedule>('GET', `/v1/schedules/${id}`)).body.nextFireAt
      expect(await dueOf(call, every)).toBe('2027-01-02T03:10:00.000Z')
      clock.set(-YEAR_MS)
      clock.advance(1000)
      const next = running ? undefined : await scheduleApi({ db, clock })
      await (next ?? { runtime }).runtime.scheduled()
      expect(await dueOf(call, every)).toBe('2026-01-02T03:10:00.000Z')
      expect(await dueOf(call, late)).toBe('2026-01-02T03:06:00.000Z')
      clock.advance(5 * 60_000)
      await (next ?? { runtime }).runtime.scheduled()
      const { body: fires } = await call<Fire[]>('GET', `/v1/schedules/${every.id}/fires?limit=200`)
      expect(
        fires.filter(({ windowAt }) => windowAt.startsWith('2026-01-02T')).map(one => [one.windowAt, one.outcome]),
      ).toEqual([
        ['2026-01-02T03:10:00.000Z', 'started'],
        ['2026-01-02T03:05:00.000Z', 'started'],
      ])
      await next?.close()
      await close()
    },
  )
})

describe('schedules over HTTP', () => {
  it('are created with defaults, read, listed, changed and deleted', async () => {
    const { create, call, clock, close } = await scheduleApi()
    const { status, body: made } = await create({ config: { input: { prompt: 'hello' } } })
    expect([status, made]).toEqual([
      201,
      {
        id: made.id,
        tenantId: 'default',
        agentName: 'clerk',
        cronExpr: '*/5 * * * *',
        timezone: 'UTC',
        timezoneSource: 'utc',
        config: { input: { prompt: 'hello' } },
        enabled: true,
        overlap: 'allow',
        catchUp: 'one',
        catchUpLimit: 10,
        nextFireAt: '2026-01-02T03:05:00.000Z',
        lastFiredAt: null,
        createdAt: '2026-01-02T03:04:05.678Z',
        updatedAt: '2026-01-02T03:04:05.678Z',
      },
    ])
    clock.advance(1)
    const { body: off } = await create({ enabled: false, name: 'off', inputTemplate: '{"a":1}' })
    expect(off).toMatchObject({ nextFireAt: null, config: { input: { a: 1 } }, name: 'off' })
    const ids = async (query: string) =>
      (await call<Schedule[]>('GET', `/v1/schedules${query}`)).body.map(schedule => schedule.id)
    expect(await ids('')).toEqual([off.id, made.id])
    expect(await ids('?enabled=true&agent=clerk')).toEqual([made.id])
    expect(await ids('?agentName=nobody')).toEqual([])
    const path = `/v1/schedules/${made.id}`
    const { body: changed } = await call<Schedule>('PUT', path, {
      body: { cronExpr: '30 2 * * *', timezone: 'Europe/Berlin', name: 'nightly' },
    })
    expect(changed).toMatchObject({
      timezone: 'Europe/Berlin',
      timezoneSource: 'schedule',
      nextFireAt: '2026-01-03T01:30:00.000Z',
      name: 'nightly',
      config: { input: { prompt: 'hello' } },
    })
    const { body: back } = await call<Schedule>('PUT', path, { body: { timezone: null, name: null } })
    expect(back).toMatchObject({ timezoneSource: 'utc', nextFireAt: '2026-01-03T02:30:00.000Z' })
    expect(back).not.toHaveProperty('name')
    expect((await call<Schedule>('GET', path)).body).toEqual(back)
    expect((await call('DELETE', path)).status).toBe(204)
    expect((await call('DELETE', path)).status).toBe(404)
    await close()
  })

  it('fire, both of one agent, and list what they did', async () => {
    const { create, call, clock, runtime, close } = await scheduleApi()
    const [one, two] = [(await create()).body, (await create({ cronExpr: '* * * * *' })).body]
    clock.advance(56_000)
    await runtime.scheduled()
    for (const { id } of [one, two]) {
      const { body: fires } = await call<Fire[]>('GET', `/v1/schedules/${id}/fires`)
      expect(fires).toEqual([
        {
          windowAt: '2026-01-02T03:05:00.000Z',
          firedAt: '2026-01-02T03:05:01.678Z',
          outcome: 'started',
          runId: expect.any(String),
        },
      ])
      const { body: run } = await call<Run>('GET', `/v1/runs/${fires[0]!.runId}`)
      expect(run).toMatchObject({ scheduleId: id, trigger: { kind: 'schedule', ref: id } })
      const { body: read } = await call<Schedule>('GET', `/v1/schedules/${id}`)
      expect(read).toMatchObject({ lastRunId: run.id, lastFiredAt: '2026-01-02T03:05:01.678Z' })
    }
    clock.advance(60_000)
    await runtime.scheduled()
    const first = await call<Fire[]>('GET', `/v1/schedules/${two.id}/fires?limit=1`)
    expect(first.body.map(fire => fire.windowAt)).toEqual(['2026-01-02T03:06:00.000Z'])
    const next = /<([^>]+)>/.exec(first.headers.get('link')!)![1]!
    const second = await call<Fire[]>('GET', next)
    expect([second.body.map(fire => fire.windowAt), second.headers.get('link')]).toEqual([
      ['2026-01-02T03:05:00.000Z'],
      null,
    ])
    await close()
  })

  it('rest while they are paused, and do not catch up when they go on', async () => {
    const { create, call, clock, runtime, close } = await scheduleApi()
    const { id } = (await create({ catchUp: 'all' })).body
    expect((await call<Schedule>('POST', `/v1/schedules/${id}/pause`)).body).toMatchObject({
      enabled: false,
      nextFireAt: null,
    })
    clock.advance(60 * 60_000)
    await runtime.scheduled()
    const { body: resumed } = await call<Schedule>('POST', `/v1/schedules/${id}/resume`)
    expect(resumed).toMatchObject({ enabled: true, nextFireAt: '2026-01-02T04:05:00.000Z' })
    await runtime.scheduled()
    expect((await call<Fire[]>('GET', `/v1/schedules/${id}/fires`)).body).toEqual([])
    await close()
  })

  it('start a run at once when asked, outside any window', async () => {
    const { create, call, close } = await scheduleApi()
    const { id } = (await create({ config: { input: { prompt: 'now' } } })).body
    const { status, body: run } = await call<Run>('POST', `/v1/schedules/${id}/run`)
    expect([status, run]).toMatchObject([
      201,
      { status: 'queued', scheduleId: id, trigger: { kind: 'schedule', ref: id } },
    ])
    expect((await call<Fire[]>('GET', `/v1/schedules/${id}/fires`)).body).toEqual([])
    await close()
  })

  it('go off with their agent, and on again only with one', async () => {
    const { create, call, close } = await scheduleApi()
    const { id } = (await create()).body
    await call('DELETE', '/v1/agents/clerk')
    expect((await call<Schedule>('GET', `/v1/schedules/${id}`)).body).toMatchObject({
      enabled: false,
      nextFireAt: null,
    })
    expect((await call('POST', `/v1/schedules/${id}/resume`)).status).toBe(404)
    await close()
  })

  it('are made once by equal calls with one key', async () => {
    const { create, call, close } = await scheduleApi()
    const [one, two] = [await create({}, { 'idempotency-key': 'a' }), await create({}, { 'idempotency-key': 'a' })]
    expect(two.body).toEqual(one.body)
    expect((await call<Schedule[]>('GET', '/v1/schedules')).body.length).toBe(1)
    await close()
  })

  it('say which member does not fit', async () => {
    const { create, call, close } = await scheduleApi()
    for (const [body, status, path] of [
      [{ cronExpr: 'soon' }, 400, 'cronExpr'],
      [{ cronExpr: '0 0 31 2 *' }, 400, 'cronExpr'],
      [{ cronExpr: '* * * * * * *' }, 400, 'cronExpr'],
      [{ timezone: 'Mars/Olympus' }, 400, 'timezone'],
      [{ timezone: '+02:00' }, 400, 'timezone'],
      [{ catchUpLimit: 101 }, 400, 'catchUpLimit'],
      [{ cron: 'x' }, 400, 'cron'],
      [{ agentName: 'nobody' }, 404, 'agent not found: nobody'],
    ] as const) {
      const got = await create(body)
      expect([got.status, JSON.stringify(got.body)]).toEqual([status, expect.stringContaining(path)])
    }
    expect((await call('GET', '/v1/schedules/preview?cronExpr=soon')).status).toBe(400)
    expect((await call('GET', '/v1/schedules/preview')).status).toBe(400)
    await close()
  })

  it('belong to a tenant', async () => {
    const { create, call, newTenant, newKey, close } = await scheduleApi()
    const { id } = (await create()).body
    const { rawKey: key } = await newKey({}, await newTenant())
    for (const [method, path] of [
      ['GET', ''],
      ['PUT', ''],
      ['DELETE', ''],
      ['POST', '/pause'],
      ['POST', '/run'],
      ['GET', '/fires'],
    ] as const) {
      const body = method === 'PUT' ? { body: {} } : {}
      const got = await call(method, `/v1/schedules/${id}${path}`, { key, ...body })
      expect([got.status, got.body.code]).toEqual([403, 'forbidden_tenant'])
    }
    expect((await call<Schedule[]>('GET', '/v1/schedules', { key })).body).toEqual([])
    await close()
  })

  it('show when they would fire', async () => {
    const { call, close } = await scheduleApi({ defaultTimezone: 'Europe/Berlin' })
    const preview = async (query: Record<string, string>) =>
      (await call<PreviewItem[]>('GET', `/v1/schedules/preview?${new URLSearchParams(query)}`)).body
    const spring = await preview({ cronExpr: '30 2 * * *', count: '2', from: '2026-03-28T12:00:00Z' })
    expect(spring).toEqual([
      { at: '2026-03-29T01:00:00.000Z', local: '2026-03-29T03:00:00', offset: '+02:00' },
      { at: '2026-03-30T00:30:00.000Z', local: '2026-03-30T02:30:00', offset: '+02:00' },
    ])
    const own = await preview({ cronExpr: '@hourly', timezone: 'Asia/Kolkata' })
    expect(own.map(item => item.local)).toEqual([
      ...[
        '2026-01-02T09:00:00',
        '2026-01-02T10:00:00',
        '2026-01-02T11:00:00',
        '2026-01-02T12:00:00',
        '2026-01-02T13:00:00',
      ],
    ])
    await close()
  })
})

it('moves schedules without a zone of their own when the default changes', async () => {
  const { db, create, call, close } = await scheduleApi()
  const plain = (await create({ cronExpr: '0 12 * * *' })).body
  const own = (await create({ cronExpr: '0 12 * * *', timezone: 'Asia/Tokyo' })).body
  const again = await scheduleApi({ db, defaultTimezone: 'America/New_York' })
  const read = async (id: string) => (await again.call<Schedule>('GET', `/v1/schedules/${id}`)).body
  expect(await read(plain.id)).toMatchObject({
    timezone: 'America/New_York',
    timezoneSource: 'deployment',
    nextFireAt: '2026-01-02T17:00:00.000Z',
  })
  expect((await read(own.id)).nextFireAt).toBe(own.nextFireAt)
  expect((await call('GET', `/v1/schedules/${plain.id}`)).status).toBe(200)
  await again.close()
  await close()
})

it('refuses to start with a default zone that is none', async () => {
  await expect(fixture({ defaultTimezone: 'Mars/Olympus' })).rejects.toThrow('"Mars/Olympus" is no time zone')
})
