import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Db } from '../../shared/sql/db.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { storeFolder, testWriter } from '../host/testing/store-folder.ts'
import { evals } from './evals.ts'
import { DAY_MS, savings, type Window } from './savings.ts'
import { savingsByDay, unchangedSql, wrongSums } from './savings-days.ts'
import { endsSql } from './stored-records.ts'
import { sampleTrace } from './testing/records.ts'

const START = Date.UTC(2026, 0, 1)
const at = (day: number, ms = 0) => new Date(START + day * DAY_MS + ms)

let folder: Awaited<ReturnType<typeof storeFolder>>
let names = 0
beforeAll(async () => {
  folder = await storeFolder()
})
afterAll(() => folder.remove())

/** Two tenants with records of five days, the last of which is not over. */
async function fiveDays() {
  const db = await folder.open(`savings-${names++}.db`)
  const clock = manualClock(at(4, 3_600_000))
  const writer = testWriter(db, { clock, limits: { checkpoint_seconds: 1 } })
  for (let n = 0; n < 300; n++) {
    const tenant = n % 3 === 0 ? 'other' : 'default'
    const served_model = n % 2 === 0 ? 'a/cheap' : 'b/dear'
    const total_cost_usd = n % 7 === 0 ? null : 0.0023
    writer.enqueue(
      sampleTrace({
        tenant,
        at: START + Math.floor((n / 300) * 4.04 * DAY_MS),
        route: n % 5 === 0 ? null : n % 5,
        final: { served_model, total_cost_usd },
      }),
    )
  }
  await writer.flush()
  return { db, clock, writer }
}

const windows: Window[] = [
  {},
  { since: at(1) },
  { since: at(1, 5000), until: at(3, 7000) },
  { until: at(2) },
  { since: at(2), until: at(3) },
  { since: at(0, 1), until: at(1, -1) },
]

const all = async (db: Db) => {
  const chains = ['default', 'other'].map(tenant => ({ db, tenant }))
  const found = []
  for (const window of windows)
    for (const group of [undefined, 'route', 'model', 'day'] as const) found.push(await savings(chains, window, group))
  return found
}

const allEvals = async (db: Db) => {
  const chains = ['default', 'other'].map(tenant => ({ db, tenant }))
  const found = []
  for (const window of windows) found.push(await evals(chains, window))
  return found
}

const summed = async (db: Db, tenant = 'default') =>
  (
    await db.execute({ sql: 'select distinct day from savings_days where tenant_id = ? order by 1', args: [tenant] })
  ).rows.map(({ day }) => Number(day) - START / DAY_MS)

/** As many steps as there are days, each in the next pass of the writer. */
async function sumUp({ clock, writer }: Awaited<ReturnType<typeof fiveDays>>) {
  for (let pass = 0; pass < 6; pass++) {
    clock.advance(31_000)
    await writer.sumUp()
  }
}

it('says the same in every window, by every group, from sums of days and from records', async () => {
  const store = await fiveDays()
  const before = await all(store.db)
  const evalsBefore = await allEvals(store.db)
  await sumUp(store)
  // The fourth day was over an hour ago, and calls of it may still end.
  expect(await summed(store.db)).toEqual([0, 1, 2])
  expect(await summed(store.db, 'other')).toEqual([0, 1, 2])
  expect(await all(store.db)).toEqual(before)
  expect(await allEvals(store.db)).toEqual(evalsBefore)
  expect(evalsBefore[0]).toMatchObject({ requests: 300, gates: [{ pass: 300 }], moves: [{ from: null, to: 0 }] })
  expect(await wrongSums(store.db)).toBeUndefined()
  // The sums are what is read.
  await store.db.execute(
    'update savings_days set requests = requests + 1000 where day = (select min(day) from savings_days)',
  )
  expect((await all(store.db))[0]!.requests).toBeGreaterThan(before[0]!.requests + 1000)
  expect(await wrongSums(store.db)).toMatchObject({ count: 2, first: { tenant: 'default' } })
  expect(await wrongSums(store.db, 'other')).toMatchObject({ count: 1 })
  expect(await wrongSums(store.db, 'nobody')).toBeUndefined()
  await store.writer.close()
})

it('keeps for evals what belongs to the sums of a day, and says where it is not what the records say', async () => {
  const store = await fiveDays()
  const { db } = store
  const kept = async () =>
    (await db.execute('select tenant_id, day from evals_days order by 1, 2')).rows.map(
      ({ tenant_id, day }) => `${tenant_id} ${Number(day) - START / DAY_MS}`,
    )
  const days = ['default 0', 'default 1', 'default 2', 'other 0', 'other 1', 'other 2']
  await sumUp(store)
  expect(await kept()).toEqual(days)
  await db.execute("update evals_days set sums = replace(sums, 'pass', 'fail') where tenant_id = 'other'")
  expect(await wrongSums(db)).toMatchObject({ count: 3, first: { tenant: 'other' } })
  for (const damaged of ['{', 'null', '{}']) {
    await db.execute({ sql: "update evals_days set sums = ? where tenant_id = 'other'", args: [damaged] })
    expect((await allEvals(db))[0]!.requests).toBe(300)
  }
  // As `router verify` says.
  await db.execute("delete from savings_days where tenant_id = 'other'")
  expect(await kept()).toEqual(days.slice(0, 3))
  await store.writer.close()
  // A store of 0.3.0 has no more than savings.
  await db.execute('delete from evals_days')
  const writer = testWriter(db, { clock: store.clock, limits: { checkpoint_seconds: 1 } })
  await sumUp({ ...store, writer })
  expect(await kept()).toEqual(days)
  expect(await wrongSums(db)).toBeUndefined()
  await writer.close()
})

it('takes a record that comes late into the sums of its day', async () => {
  const store = await fiveDays()
  await sumUp(store)
  const before = await savings([{ db: store.db, tenant: 'default' }], {})
  store.writer.enqueue(sampleTrace({ tenant: 'default', at: START + DAY_MS + 5 }))
  await store.writer.flush()
  expect(await summed(store.db)).toEqual([0, 2])
  expect((await savings([{ db: store.db, tenant: 'default' }], {})).requests).toBe(before.requests + 1)
  await sumUp(store)
  expect(await summed(store.db)).toEqual([0, 1, 2])
  expect((await savings([{ db: store.db, tenant: 'default' }], {})).requests).toBe(before.requests + 1)
  await store.writer.close()
})

it('sums up anew what pruning left of a day', async () => {
  const store = await fiveDays()
  await sumUp(store)
  expect(await store.writer.prune('default', at(1, DAY_MS / 2))).toBeGreaterThan(0)
  expect(await summed(store.db)).toEqual([2])
  const left = Number(
    (await store.db.execute("select count(*) as n from traces where tenant_id = 'default'")).rows[0]?.n,
  )
  expect((await savings([{ db: store.db, tenant: 'default' }], {})).requests).toBe(left)
  await sumUp(store)
  expect(await summed(store.db)).toEqual([1, 2])
  expect((await savings([{ db: store.db, tenant: 'default' }], {})).requests).toBe(left)
  await store.writer.close()
})

it('keeps no sums of a day whose records changed while they were read', async () => {
  const { db, clock, writer } = await fiveDays()
  const { rows } = await db.execute('select holder, epoch from writer_lease')
  const term = { holder: String(rows[0]?.holder), epoch: Number(rows[0]?.epoch) }
  let meanwhile: (() => Promise<unknown>) | undefined
  const disturbed: Db = {
    ...db,
    async execute(statement) {
      const answer = await db.execute(statement)
      if (typeof statement === 'object' && statement.sql.includes('group by route, model')) {
        await meanwhile?.()
        meanwhile = undefined
      }
      return answer
    },
  }
  const step = () => savingsByDay({ db: disturbed, clock }).step(['default'], term, () => false)
  const dayMs = START + 5
  meanwhile = async () => {
    writer.enqueue(sampleTrace({ tenant: 'default', at: dayMs }))
    await writer.flush()
  }
  await step()
  expect(await summed(db)).toEqual([])
  meanwhile = () => writer.prune('default', at(0, DAY_MS / 2))
  await step()
  expect(await summed(db)).toEqual([])
  await step()
  expect(await summed(db)).toEqual([0])
  expect(await wrongSums(db)).toBeUndefined()
  await writer.close()
})

it('looks at the ends of a chain and behind a place, and at no more of its records', async () => {
  const { db, writer } = await fiveDays()
  const looks = async (sql: string, args: (string | number)[]) =>
    (await db.execute({ sql: `explain query plan ${sql}`, args })).rows
      .map(({ detail }) => String(detail))
      .filter(detail => detail.includes('traces'))
  for (const look of [
    ...(await looks(endsSql, ['default'])),
    ...(await looks(`select ${unchangedSql}`, ['default', 1, 'default', 300, 0, DAY_MS])),
  ])
    expect(look).toMatch(
      /^SEARCH traces USING (?:COVERING )?INDEX sqlite_autoindex_traces_1 \(tenant_id=\?(?: AND seq>\?)?\)$/,
    )
  await writer.close()
})
