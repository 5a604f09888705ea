import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { type Fixture, fixture, type Got } from '../auth/testing/fixture.ts'
import { titleOf } from './route.ts'
import { listStatement } from './run-list.ts'

let here: Fixture
beforeEach(async () => {
  here = await fixture({ embeddedNode: false })
})
afterEach(() => here.close())

const idOf = (i: number) => `${String(i).padStart(8, '0')}-0000-7000-8000-000000000000`

interface Row {
  status?: string
  createdMs?: number
  endedMs?: number | null
  costNano?: number
  tookMs?: number
  code?: string
  trigger?: string
  parent?: string
  input?: object
}

let made = 0
async function put(row: Row = {}): Promise<string> {
  const id = idOf(++made)
  const { status = 'succeeded', createdMs = made, endedMs = made + 10, costNano = 0, tookMs = 0 } = row
  await here.db.write([
    {
      sql: `insert into runs (id, tenant_id, agent_name, agent_id, version_id, status, created_ms, updated_ms, started_ms, finished_ms,
          error_code, cost_nano, trigger_kind, parent_run_id, isolation)
        values (?1, 'default', 'a', 'i', 'v', ?2, ?3, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'shared')`,
      args: [
        id,
        status,
        createdMs,
        endedMs === null ? null : endedMs - tookMs,
        endedMs,
        row.code ?? null,
        costNano,
        row.trigger ?? 'api',
        row.parent ?? null,
      ],
    },
    { sql: 'insert into run_data (run_id, input) values (?, ?)', args: [id, JSON.stringify(row.input ?? {})] },
  ])
  return id
}

async function list(query: string): Promise<Run[]> {
  const { status, body } = await here.call<Run[]>('GET', `/v1/runs?${query}`)
  expect([query, status]).toEqual([query, 200])
  return body
}

async function pagesOf(query: string): Promise<string[]> {
  const ids: string[] = []
  for (let path: string | undefined = `/v1/runs?${query}`; path !== undefined; ) {
    const got: Got<Run[]> = await here.call<Run[]>('GET', path)
    expect(got.status).toBe(200)
    ids.push(...got.body.map(({ id }) => id))
    path = /<([^>]+)>/.exec(got.headers.get('link') ?? '')?.[1]
  }
  return ids
}

it('sorts ended runs by cost and duration, also over pages of equal ones', async () => {
  const costs = [5, 0, 9, 5, 5, 0, 7]
  const runs: { id: string; costNano: number; tookMs: number }[] = []
  for (const [at, costNano] of costs.entries()) {
    const tookMs = (at % 3) * 100
    runs.push({ id: await put({ costNano, tookMs }), costNano, tookMs })
  }
  await put({ status: 'running', endedMs: null, costNano: 99 })
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? 1 : -1)
  const dearest = runs.toSorted((a, b) => b.costNano - a.costNano || byId(a, b)).map(({ id }) => id)
  const longest = runs.toSorted((a, b) => b.tookMs - a.tookMs || byId(a, b)).map(({ id }) => id)
  for (const limit of [1, 2, 3, 50]) {
    expect(await pagesOf(`sort=costUsd&limit=${limit}`)).toEqual(dearest)
    expect(await pagesOf(`sort=durationMs&limit=${limit}`)).toEqual(longest)
  }
  expect((await here.call('GET', '/v1/runs?sort=costUsd&sessionId=x')).status).toBe(400)
})

it('finds runs by the time and by the cause of their failure, and counts them', async () => {
  const ids: string[] = []
  for (let i = 0; i < 5; i++) ids.push(await put({ createdMs: 1_000_000 + i * 1000 }))
  const failed = await put({ status: 'failed', code: 'timeout', trigger: 'session' })
  await put({ status: 'failed', code: 'model_error' })
  const at = (ms: number) => encodeURIComponent(new Date(1_000_000 + ms).toISOString())
  expect(await pagesOf(`from=${at(1000)}&to=${at(3000)}&limit=1`)).toEqual([ids[2], ids[1]])
  // A turn of a session that failed is found by its cause.
  expect(await pagesOf('errorCode=timeout')).toEqual([failed])
  const { headers } = await here.call('GET', `/v1/runs?from=${at(0)}&limit=2&count=true`)
  expect(headers.get('total-count')).toBe('5')
  expect((await here.call('GET', '/v1/runs?errorCode=nonsense')).status).toBe(400)
})

it('folds sub-runs below the run that started them', async () => {
  const parent = await put()
  const child = await put({ trigger: 'subagent', parent })
  await put({ trigger: 'subagent', parent })
  await put({ trigger: 'subagent', parent: child })
  expect(await list('subRuns=folded')).toMatchObject([{ id: parent, subRuns: 2 }])
  expect((await list(`parentRunId=${child}`)).map(({ parentRunId }) => parentRunId)).toEqual([child])
  expect(await list('')).toHaveLength(4)
  expect((await list(''))[0]).not.toHaveProperty('subRuns')
})

it.each([
  ['sessionId', 'runs_session'],
  ['scheduleId', 'runs_schedule'],
  ['parentRunId', 'runs_parent'],
])('finds the runs of one %s without reading the others of the tenant', async (name, index) => {
  for (const more of [{}, { status: 'succeeded' as const }, { trigger: 'api' as const }, { agentName: 'a' }]) {
    const statement = listStatement('default', { limit: 50, [name]: 'one', ...more }, { limit: 50, after: undefined })
    if (typeof statement === 'string') throw new Error('a statement with values was expected')
    const { rows } = await here.db.execute({ ...statement, sql: `explain query plan ${statement.sql}` })
    expect(rows.map(({ detail }) => detail).join()).toContain(index)
  }
})

it('gives a title in the place of what was given and said, and none where nothing is stored', async () => {
  await put({ input: { prompt: `Say\n\n hello ${'x'.repeat(500)}` } })
  await put({ input: { prompt: 'y'.repeat(200_000) } })
  await put({ input: { a: 1, b: [2] } })
  await put()
  const found = await list('fields=title')
  expect(found.map(({ title }) => title)).toEqual([
    undefined,
    '{"a":1,"b":[2]}',
    undefined,
    `${`Say hello ${'x'.repeat(500)}`.slice(0, 120)}…`,
  ])
  for (const run of found) expect(run).not.toHaveProperty('input')
  expect((await list('fields=summary'))[3]).not.toHaveProperty('title')
  // Half of a pair of surrogates is no text.
  expect(titleOf({ prompt: `${'a'.repeat(119)}😀😀` })!.isWellFormed()).toBe(true)
})
