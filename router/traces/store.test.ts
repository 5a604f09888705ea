import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { type Sealed, seal } from '../../shared/sign/record-chain.ts'
import type { Db } from '../../shared/sql/db.ts'
import { check } from '../../shared/wire/issues.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import { traceList } from '../../shared/wire/router/traces.ts'
import { storeFolder, testWriter } from '../host/testing/store-folder.ts'
import { evals } from './evals.ts'
import { savings, savingsSql } from './savings.ts'
import { CursorError, listSql, lookupSql, type TraceFilter, traceStore } from './store.ts'
import { exportRecords, storedTenants } from './stored-records.ts'
import { sampleTrace } from './testing/records.ts'

const day = 86_400_000
const start = Date.UTC(2026, 0, 1)
let folder: Awaited<ReturnType<typeof storeFolder>>
let db: Db
let records: UnsealedTrace[]
const chainsOf = (...tenants: string[]) => tenants.map(tenant => ({ db, tenant }))

beforeAll(async () => {
  folder = await storeFolder()
  db = await folder.open()
  // 2,600 records over 26 days, so that ids lie in several groups of 1,024; every tenth is the other tenant's.
  records = Array.from({ length: 2600 }, (_, index) =>
    sampleTrace({
      tenant: index % 10 === 9 ? 'other' : 'default',
      at: start + Math.floor(index / 100) * day + (index % 100) * 1000,
      session: `s${index % 50}`,
      mode: index % 4 === 0 ? 'observe' : 'enforce',
      route: index % 4 === 0 ? null : index % 3,
      model: index % 2 === 0 ? 'a/cheap' : 'b/dear',
      cost: index % 100 === 50 ? null : 0.0023,
      final: {
        response_id: `msg_${index}`,
        client_request_id: `call_${index % 1000}`,
        escalations: index % 5 === 0 ? 1 : 0,
        ...(index % 7 === 0 && { baseline_calibrated_usd: 0.01 }),
      },
    }),
  )
  const writer = testWriter(db)
  for (const record of records) writer.enqueue(record)
  await writer.close()
})
afterAll(() => folder.remove())

const ids = (list: readonly { trace_id: string }[]) => list.map(({ trace_id }) => trace_id)
const newestFirst = (list: readonly UnsealedTrace[]) => [...list].sort((a, b) => (a.ts < b.ts ? 1 : -1))
const own = () => records.filter(({ tenant_id }) => tenant_id === 'default')

async function plan(sql: string, args: TraceFilter | unknown[]) {
  const { rows } = await db.execute({ sql: `explain query plan ${sql}`, args: args as never })
  return rows.map(row => String(row.detail)).join('\n')
}

describe('the list of traces', () => {
  it.each<[string, Partial<TraceFilter>, (one: UnsealedTrace, index: number) => boolean]>([
    ['everything', {}, () => true],
    ['a mode', { mode: 'observe' }, ({ mode }) => mode === 'observe'],
    ['a route', { route: 2 }, ({ route_ix }) => route_ix === 2],
    ['a session', { session: 's7' }, ({ session_id }) => session_id === 's7'],
    ['a way of serving', { served_from: 'passthrough' }, ({ mode }) => mode === 'observe'],
    [
      'a window',
      { since: new Date(start + 3 * day), until: new Date(start + 5 * day + 20_000) },
      ({ ts }) => Date.parse(ts) >= start + 3 * day && Date.parse(ts) < start + 5 * day + 20_000,
    ],
    [
      'a session in a window',
      { session: 's7', since: new Date(start + 20 * day) },
      ({ session_id, ts }) => session_id === 's7' && Date.parse(ts) >= start + 20 * day,
    ],
  ])('gives %s page by page, newest first, each once', async (_, filter, holds) => {
    const store = traceStore(db)
    const found: string[] = []
    let before: string | undefined
    do {
      const page = await store.list({ tenant: 'default', limit: 400, ...filter, before })
      expect(check(traceList, page)).toMatchObject({ ok: true })
      found.push(...ids(page.traces))
      before = page.next ?? undefined
    } while (before !== undefined)
    const expected = ids(newestFirst(own().filter(holds)))
    expect(expected.length).toBeGreaterThan(10)
    expect(found).toEqual(expected)
  })

  it('merges the tenants when none is named', async () => {
    const store = traceStore(db)
    const first = await store.list({ limit: 30 })
    const second = await store.list({ limit: 30, before: first.next ?? undefined })
    expect(ids([...first.traces, ...second.traces])).toEqual(ids(newestFirst(records).slice(0, 60)))
    expect(await storedTenants(db)).toEqual(['default', 'other'])
  })

  it('of many tenants reads the records of the page alone, and lets others have their turn', async () => {
    const own = await storeFolder()
    const many = await own.open()
    const writer = testWriter(many)
    const all = Array.from({ length: 1500 }, (_, i) =>
      sampleTrace({ tenant: `t${i % 150}`, at: start + (i >> 2) * 1000 }),
    )
    for (const record of all) writer.enqueue(record)
    await writer.close()
    let bodies = 0
    const counting: Db = {
      ...many,
      async execute(statement) {
        const answer = await many.execute(statement)
        if (answer.columns.includes('body')) bodies += answer.rows.length
        return answer
      },
    }
    const store = traceStore(counting)
    const order = (one: UnsealedTrace, two: UnsealedTrace) =>
      two.ts.localeCompare(one.ts) || (one.tenant_id < two.tenant_id ? 1 : -1)
    const found: string[] = []
    let before: string | undefined
    let turns = 0
    let isOver = false
    const beside = () => {
      turns++
      if (!isOver) setImmediate(beside)
    }
    beside()
    do {
      const page = await store.list({ limit: 100, before })
      found.push(...ids(page.traces))
      before = page.next ?? undefined
    } while (before !== undefined)
    isOver = true
    await own.remove()
    expect(found).toEqual(ids(all.toSorted(order)))
    expect(bodies).toBe(all.length)
    expect(turns).toBeGreaterThan(15 * 20)
  })

  it('refuses a cursor that it did not make', async () => {
    await expect(traceStore(db).list({ limit: 1, before: 'x' })).rejects.toThrow(CursorError)
  })
})

describe('one trace', () => {
  it('is found by each of its ids, the newest of several, and never another tenant’s', async () => {
    const store = traceStore(db)
    const [old, newest] = [records[3]!, records[2003]!]
    expect((await store.get(old.trace_id, 'default'))?.trace_id).toBe(old.trace_id)
    expect((await store.get('msg_3', 'default'))?.trace_id).toBe(old.trace_id)
    expect((await store.get('call_3', 'default'))?.trace_id).toBe(newest.trace_id)
    expect((await store.get('call_3'))?.trace_id).toBe(newest.trace_id)
    expect(await store.get('msg_3', 'other')).toBeUndefined()
    expect(await store.get(old.trace_id, 'other')).toBeUndefined()
    expect(await store.get('msg_nobody')).toBeUndefined()
  })
})

describe('sums', () => {
  it('add up whole nano-USD over the window, by group, and leave out what has no price', async () => {
    const priced = own().filter(({ final }) => final.total_cost_usd !== null)
    const total = await savings(chainsOf('default'), {}, 'model')
    const spent = (priced.length * 23) / 10_000
    const calibrated = priced.filter(({ final }) => final.baseline_calibrated_usd !== undefined).length
    expect(total).toMatchObject({
      requests: own().length,
      unpriced: own().length - priced.length,
      spent_usd: spent,
      gate_usd: 0,
      baseline_same_token_usd: (priced.length * 115) / 10_000,
      savings_usd: (priced.length * 92) / 10_000,
      savings_pct: 80,
      baseline_calibrated_usd: calibrated / 100,
      savings_calibrated_usd: (calibrated * 77) / 10_000,
    })
    expect(total.groups.map(({ key, requests }) => [key, requests])).toEqual([
      ['a/cheap', own().filter(({ final }) => final.served_model === 'a/cheap').length],
      ['b/dear', own().filter(({ final }) => final.served_model === 'b/dear').length],
    ])
    const window = { since: new Date(start + day), until: new Date(start + 3 * day) }
    const byDay = await savings(chainsOf('default', 'other'), window, 'day')
    expect(byDay.groups.map(({ key, requests }) => [key, requests])).toEqual([
      ['2026-01-02', 100],
      ['2026-01-03', 100],
    ])
    expect((await savings(chainsOf('default'), {}, 'route')).groups.map(({ key }) => key)).toEqual([
      '0',
      '1',
      '2',
      'none',
    ])
    expect(await savings(chainsOf('nobody'), {})).toMatchObject({ requests: 0, savings_pct: null, groups: [] })
  })

  it('count gates, rungs and outcomes', async () => {
    let last: Sealed | undefined
    const report = async (trace: string, reporter: string, verdict: string) => {
      const body = {
        v: 1,
        tenant_id: 'default',
        feedback_id: crypto.randomUUID(),
        trace_id: trace,
        gate_id: 'outcome',
        reporter,
        verdict,
      }
      last = seal(body, last)
      await db.execute({
        sql: 'insert into feedback values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
        args: [
          'default',
          last.seq,
          body.feedback_id,
          trace,
          'outcome',
          reporter,
          verdict,
          start,
          last.hash,
          canonicalize(last),
        ],
      })
    }
    const [a, b, c, d] = ids(own())
    await report(a!, 'ci', 'fail')
    await report(a!, 'ci', 'pass')
    await report(b!, 'ci', 'pass')
    await report(b!, 'human', 'fail')
    await report(c!, 'ci', 'abstain')
    await report(d!, 'ci', 'pass')
    const found = await evals(chainsOf('default'), {})
    expect(found).toMatchObject({
      requests: own().length,
      escalations: own().filter(({ final }) => final.escalations === 1).length,
      failovers: 0,
      served_by_rung: { '0': own().length },
      latency: { calls: 1000, p50_ms: 820.1, p95_ms: 820.1 },
      moves: [{ from: null, to: 0, requests: own().length }],
      gates: [
        { gate_id: 'non-empty', pass: own().length, fail: 0, abstain: 0, cost_usd: 0, p50_ms: 0.012, p95_ms: 0.012 },
      ],
      outcomes: { reported: 3, failed: 1, served_failure: 1 / 3, ucb95: 1 },
    })
    expect((await evals(chainsOf('default'), { since: new Date(start + day) })).outcomes.reported).toBe(0)
    const expected = Map.groupBy(own(), ({ route_ix }) => route_ix)
    expect(found.routes.map(({ route_ix, requests, served_by_rung }) => [route_ix, requests, served_by_rung])).toEqual(
      [...expected]
        .toSorted(([x], [y]) => (x ?? Number.POSITIVE_INFINITY) - (y ?? Number.POSITIVE_INFINITY))
        .map(([route_ix, all]) => [route_ix, all.length, { '0': all.length }]),
    )
    expect((await evals(chainsOf('nobody'), {})).latency).toEqual({ calls: 0, p50_ms: null, p95_ms: null })
    expect(await traceStore(db).feedbackOf('default', a!)).toHaveLength(2)
  })
})

describe('reads', () => {
  it('go through an index', async () => {
    const list = listSql('default', { limit: 50, mode: 'enforce', since: new Date(start), before: '5.5.default' })
    expect(await plan(list.sql, list.args)).toMatch(
      /SEARCH t USING COVERING INDEX traces_time \(tenant_id=\? AND ts_ms>\? AND ts_ms<\?\)/,
    )
    expect(await plan(list.sql, list.args)).not.toMatch(/TEMP B-TREE|SCAN t/)
    for (const page of [{}, { since: new Date(1) }, { until: new Date() }, { before: `${Date.now()}.9.default` }]) {
      const session = listSql('default', { limit: 50, session: 's1', ...page })
      expect(await plan(session.sql, session.args), JSON.stringify(page)).toMatch(
        /INDEX traces_session \(tenant_id=\? AND <expr>=\? AND session_id=\?\)/,
      )
    }
    for (const [column, index] of [
      ['response_id', 'traces_response'],
      ['upstream_request_id', 'traces_upstream'],
      ['client_request_id', 'traces_client'],
    ] as const) {
      const expected = new RegExp(`SEARCH t USING INDEX ${index} \\(tenant_id=\\? AND <expr>=\\? AND ${column}=\\?\\)`)
      expect(await plan(lookupSql(column), ['default', 'x'])).toMatch(expected)
    }
    expect(await plan('select body from traces where trace_id = ?', ['x'])).toContain('INDEX traces_trace_id')
    const sums = savingsSql('default', { since: new Date(start) }, 'model')
    expect(await plan(sums.sql, sums.args)).toMatch(
      /USING COVERING INDEX traces_time \(tenant_id=\? AND ts_ms>\? AND ts_ms<\?\)/,
    )
  })
})

describe('an export', () => {
  it('of a window is an unbroken piece that holds every record of the window', async () => {
    const window = { since: new Date(start + 3 * day), until: new Date(start + 4 * day) }
    const lines: string[] = []
    for await (const lot of exportRecords(db, { tenant: 'default', ...window })) lines.push(...lot)
    const found = lines.map(line => JSON.parse(line) as Sealed & UnsealedTrace)
    expect(found.map(({ seq }) => seq)).toEqual(Array.from({ length: 90 }, (_, index) => 270 + index))
    expect(ids(found)).toEqual(ids(own().slice(270, 360)))
  })
})
