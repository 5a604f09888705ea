import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { capsFor, hasCaps } from '../enforce/plan.ts'
import { configOf } from '../policy/testing/route-of.ts'
import { routerSteps } from '../schema/steps.ts'
import { budgetLedger, type Caps, savedLedger } from './ledger.ts'
import { spentStore } from './spent-store.ts'

const none: Caps = {
  request: null,
  session: null,
  day: null,
  tenant_day: null,
  route_day: null,
  route_tenant_day: null,
}
const at = (text: string) => () => new Date(text)
const a = { tenantId: 't', sessionId: 's', route: 'r' }

describe('the store of what was spent', () => {
  it('keeps no row that can matter no more', async () => {
    const db = await openDb(':memory:')
    await migrate(db, 'router', routerSteps)
    const store = spentStore(db)
    await store.add([{ key: 'session/t/old', spent: 1 }], new Date('2026-01-01T10:00:00Z'))
    await store.add([{ key: 'session/t/new', spent: 1 }], new Date('2026-01-03T09:00:00Z'))
    await store.add([{ key: 'session/t/new', spent: 1 }], new Date('2026-01-03T11:00:00Z'))
    const { rows } = await db.execute('select key, spent from router_budgets')
    expect(rows.map(({ key, spent }) => [key, spent])).toEqual([['session/t/new', 2]])
    db.close()
  })
})

it('what could not be stored is stored a moment later, without another call', async () => {
  const stored: number[] = []
  let isAway = true
  const store = {
    async add(rows: readonly { spent: number }[]) {
      if (isAway) throw new Error('the store is away')
      stored.push(...rows.map(({ spent }) => spent))
    },
  }
  const log = {
    error() {
      isAway = false
    },
  }
  const budgets = savedLedger({ clock: manualClock(new Date('2026-01-01T10:00:00Z')), log, store })
  const got = budgets.ledger.open(a, { ...none, day: 10 }).reserve(3)
  if (got.ok) got.settle(3)
  await vi.waitFor(() => expect(stored).toContain(3), { timeout: 5000 })
  await budgets.close()
})

it('what open calls have reserved is stored as spent until they end, for the process may be killed', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'router', routerSteps)
  const clock = manualClock(new Date('2026-01-01T10:00:00Z'))
  const log = { error: () => undefined }
  const budgets = savedLedger({ clock, log, store: spentStore(db) })
  const reserve = (bound: number) => budgets.ledger.open(a, { ...none, day: 10 }).reserve(bound)
  const afterKill = async (bound: number) => {
    const next = budgetLedger(clock.now)
    next.load(await spentStore(db).totals())
    return next.open(a, { ...none, day: 10 }).reserve(bound)
  }
  const [short, long] = [reserve(2), reserve(6)]
  if (short.ok) short.settle(1)
  await budgets.save()
  expect(await afterKill(4)).toMatchObject({ ok: false, scope: 'day', used: 7 })
  if (long.ok) long.settle(2)
  await budgets.close()
  expect(await afterKill(8)).toMatchObject({ ok: false, scope: 'day', used: 3 })
  expect((await afterKill(7)).ok).toBe(true)
  db.close()
})

it('bounds that no cap holds are not stored: together they may be more than a store takes', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'router', routerSteps)
  const errors: string[] = []
  const log = { error: (message: string) => void errors.push(message) }
  const clock = manualClock(new Date('2026-01-01T10:00:00Z'))
  const budgets = savedLedger({ clock, log, store: spentStore(db) })
  const open = [1, 2].map(() => budgets.ledger.open(a, none).reserve(Number.MAX_SAFE_INTEGER))
  const other = budgets.ledger.open({ ...a, tenantId: 'u' }, { ...none, tenant_day: 10 }).reserve(4)
  await budgets.save()
  expect(errors).toEqual([])
  const stored = async () => new Map((await spentStore(db).totals()).map(({ key, spent }) => [key, spent]))
  expect((await stored()).get('day/2026-01-01')).toBe(4)
  for (const one of [...open, other]) if (one.ok) one.settle(1)
  await budgets.close()
  expect([errors, (await stored()).get('day/2026-01-01')]).toEqual([[], 3])
  db.close()
})

it('a process that has just started forgets what is of days ago, and nothing where its clock is ahead', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'router', routerSteps)
  const at = (text: string) => new Date(`2026-01-${text}`)
  const add = (key: string, time: Date) => spentStore(db).add([{ key, spent: 1 }], time)
  const keys = async () => (await spentStore(db).totals()).map(({ key }) => key).toSorted()
  await add('monday', at('05T10:00:00Z'))
  await add('wednesday', at('07T11:00:00Z'))
  await add('thursday', at('08T12:00:00Z'))
  expect(await keys()).toEqual(['thursday', 'wednesday'])
  await add('ahead', new Date('2027-01-08T12:00:00Z'))
  expect(await keys()).toEqual(['ahead', 'thursday', 'wednesday'])
  db.close()
})

it('what a day has spent still counts after a clock was ahead for a while', async () => {
  const db = await openDb(':memory:')
  await migrate(db, 'router', routerSteps)
  const clock = manualClock(new Date('2026-01-01T10:00:00Z'))
  const store = spentStore(db)
  const ledger = budgetLedger(clock.now, { monotonic: clock.monotonic })
  const spend = async (of: typeof ledger, cost: number) => {
    const got = of.open(a, { ...none, day: 10 }).reserve(cost)
    if (got.ok) got.settle(cost)
    await store.add(of.takeUnsaved(), clock.now())
    return got.ok
  }
  expect(await spend(ledger, 8)).toBe(true)
  clock.set(365 * 86_400_000)
  for (let minutes = 0; minutes < 30; minutes++) {
    clock.advance(60_000)
    await spend(ledger, 1)
  }
  const restarted = budgetLedger(clock.now, { monotonic: clock.monotonic })
  restarted.load(await store.totals())
  clock.set(-365 * 86_400_000)
  expect([await spend(ledger, 3), await spend(restarted, 3)]).toEqual([false, false])
  db.close()
})

describe('budget ledger', () => {
  it('refuses what would pass a cap in any scope, and names scope, limit and use', () => {
    const ledger = budgetLedger(at('2026-01-01T10:00:00Z'))
    const first = ledger.open(a, { ...none, session: 100 })
    expect(first.reserve(60)).toMatchObject({ ok: true })
    expect(first.reserve(41)).toEqual({ ok: false, scope: 'session', limit: 100, used: 60 })
    const other = ledger.open({ ...a, sessionId: 'other' }, { ...none, session: 100, tenant_day: 99 })
    expect(other.reserve(40)).toMatchObject({ ok: false, scope: 'tenant_day', used: 60 })
  })

  it('counts on the account of a route what goes over it, and nothing else', () => {
    const ledger = budgetLedger(at('2026-01-01T10:00:00Z'))
    const spend = (route: string, cost: number, caps: Partial<Caps>, tenantId = 't') => {
      const got = ledger.open({ ...a, tenantId, route }, { ...none, ...caps }).reserve(cost)
      if (got.ok) got.settle(cost)
      return got.ok ? 'made' : [got.scope, got.used]
    }
    expect(spend('one', 90, { route_day: 100 })).toBe('made')
    expect(spend('two', 90, { route_day: 100 })).toBe('made')
    expect(spend('two', 20, { route_day: 100 })).toEqual(['route_day', 90])
    expect(spend('two', 5, { day: 184 })).toEqual(['day', 180])
    expect(spend('three', 6, { route_tenant_day: 10 })).toBe('made')
    expect(spend('three', 6, { route_tenant_day: 10 })).toEqual(['route_tenant_day', 6])
    expect(spend('three', 6, { route_tenant_day: 10 }, 'other')).toBe('made')
    // A restart goes on from what was stored.
    const later = budgetLedger(at('2026-01-01T12:00:00Z'))
    later.load(ledger.takeUnsaved())
    expect(later.open({ ...a, route: 'two' }, { ...none, route_day: 100 }).reserve(20)).toMatchObject({ used: 90 })
  })

  it('frees what a call did not cost', () => {
    const account = budgetLedger(at('2026-01-01T10:00:00Z')).open(a, { ...none, request: 100 })
    const one = account.reserve(100)
    if (!one.ok) throw new Error('refused')
    one.settle(30)
    one.settle(30)
    expect(account.reserve(71)).toMatchObject({ ok: false, used: 30 })
    expect(account.reserve(70)).toMatchObject({ ok: true })
  })

  it('starts a new day at midnight UTC, and sessions go on', () => {
    let now = new Date('2026-01-01T23:59:59Z')
    const ledger = budgetLedger(() => now)
    const spend = ledger.open(a, { ...none, day: 10 }).reserve(10)
    if (!spend.ok) throw new Error('refused')
    spend.settle(10)
    expect(ledger.open(a, { ...none, day: 10 }).reserve(1).ok).toBe(false)
    now = new Date('2026-01-02T00:00:00Z')
    expect(ledger.open(a, { ...none, day: 10 }).reserve(10).ok).toBe(true)
    expect(ledger.open(a, { ...none, session: 15 }).reserve(6).ok).toBe(false)
  })

  it('continues where an earlier process stopped', () => {
    const first = budgetLedger(at('2026-01-01T10:00:00Z'))
    const spend = first.open(a, none).reserve(7)
    if (spend.ok) spend.settle(7)
    const rows = first.takeUnsaved()
    expect(first.takeUnsaved()).toEqual([])
    const second = budgetLedger(at('2026-01-01T11:00:00Z'))
    second.load(rows)
    expect(second.open(a, { ...none, day: 10 }).reserve(4)).toMatchObject({ ok: false, scope: 'day', used: 7 })
  })

  it('forgets what was quiet for two days, and nothing that still has a call on its way', () => {
    let now = new Date('2026-01-01T10:00:00Z')
    const ledger = budgetLedger(() => now)
    const spend = (sessionId: string) => ledger.open({ ...a, sessionId }, none).reserve(1)
    for (let n = 0; n < 50; n++) {
      const one = spend(`s${n}`)
      if (one.ok) one.settle(1)
    }
    expect(ledger.size).toBe(52)
    now = new Date('2026-01-03T09:00:00Z')
    const open = spend('open')
    expect(ledger.size).toBe(55)
    now = new Date('2026-01-03T11:00:00Z')
    if (open.ok) open.settle(1)
    spend('later')
    expect(ledger.size).toBe(4)
    now = new Date('2026-01-09T11:00:00Z')
    spend('much later')
    expect(ledger.open({ ...a, sessionId: 'later' }, { ...none, session: 1 }).reserve(1)).toMatchObject({ used: 1 })
  })

  it('remembers what a tenant has spent, however many names of sessions another one makes up', () => {
    const ledger = budgetLedger(at('2026-01-01T10:00:00Z'))
    const acme = ledger.open({ ...a, tenantId: 'acme' }, { ...none, tenant_day: 100 })
    const call = acme.reserve(100)
    if (call.ok) call.settle(100)
    const held = ledger.open({ tenantId: 'flood', sessionId: 'held', route: 'r' }, none).reserve(1)
    expect(held.ok).toBe(true)
    for (let ix = 0; ix <= 200_001; ix++) {
      ledger.open({ tenantId: 'flood', sessionId: `s${ix}`, route: 'r' }, { ...none, tenant_day: 0 }).reserve(1)
    }
    expect(ledger.open({ ...a, tenantId: 'acme' }, { ...none, tenant_day: 100 }).reserve(1)).toMatchObject({
      ok: false,
      used: 100,
    })
    expect(ledger.open({ ...a, tenantId: 'acme' }, { ...none, session: 100 }).reserve(1)).toMatchObject({
      ok: false,
      used: 100,
    })
    expect(ledger.size).toBeLessThan(200_010)
  })

  it('never lets spent and reserved together pass a cap, whatever the order, while calls cost no more than their bound', () => {
    const step = fc.record({
      bound: fc.nat(50),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      settles: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.nat(300), (steps, cap) => {
        const ledger = budgetLedger(at('2026-01-01T10:00:00Z'))
        let held = 0
        const open: { settle(cost: number): void; bound: number; share: number }[] = []
        for (const { bound, share, settles } of steps) {
          const got = ledger.open(a, { ...none, tenant_day: cap }).reserve(bound)
          expect(got.ok).toBe(held + bound <= cap)
          if (got.ok) {
            held += bound
            open.push({ settle: got.settle, bound, share })
          }
          const one = settles ? open.shift() : undefined
          if (!one) continue
          const cost = Math.floor(one.bound * one.share)
          one.settle(cost)
          held += cost - one.bound
          expect(held).toBeLessThanOrEqual(cap)
        }
      }),
    )
  })
})

it('reads each table as a cap on what it is about', () => {
  const config = configOf(`[budget]
per_day_usd = 20
per_tenant_day_usd = 9
[tenant.acme.budget]
per_day_usd = 7
[[route]]
mode = "enforce"
ladder = ["anthropic/a"]
budget = { per_day_usd = 3, per_tenant_day_usd = 2, per_request_usd = 1 }
`)
  const caps = (tenant: string) => capsFor(config, config.routes[0]!, tenant, null)
  expect(caps('acme')).toEqual({
    request: 1e9,
    session: null,
    day: 20e9,
    tenant_day: 7e9,
    route_day: 3e9,
    route_tenant_day: 2e9,
  })
  expect(caps('other').tenant_day).toBe(9e9)
})

describe('whether a config caps anything', () => {
  const route = '[[route]]\nmode = "enforce"\nladder = ["anthropic/a"]\n'
  const caps = ['per_request_usd', 'per_session_usd', 'per_day_usd', 'per_tenant_day_usd']

  it.each(caps)('is known for %s, wherever it stands', cap => {
    expect(hasCaps(configOf(`[budget]\n${cap} = 1\n${route}`))).toBe(true)
    expect(hasCaps(configOf(`${route}budget = { ${cap} = 1 }\n`))).toBe(true)
    expect(hasCaps(configOf(`${route}[tenant.acme.budget]\n${cap} = 1\n`))).toBe(true)
    expect(hasCaps(configOf(`${route}match = { task = "x" }\n${route}budget = { ${cap} = 0.000001 }\n`))).toBe(true)
  })

  it('is not so without one', () => {
    expect(hasCaps(configOf(`[budget]\ntokens_per_byte = 0.4\n${route}`))).toBe(false)
    expect(hasCaps(configOf(route))).toBe(false)
  })
})
