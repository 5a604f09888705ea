import fc from 'fast-check'
import { expect, it } from 'vitest'
import { silentLog } from '../../../shared/log/log.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import { manualClock } from '../../../shared/time/testing/manual-clock.ts'
import type { Caps, Reservation, SpentRow } from '../../budget/ledger.ts'
import { type Accounts, accounts } from './accounts.ts'
import { remoteBudgets } from './other-processes.ts'

const CAP = 1000
const caps: Caps = {
  request: null,
  session: null,
  day: CAP,
  tenant_day: null,
  route_day: null,
  route_tenant_day: null,
}
const spender = { tenantId: 't', sessionId: 's', route: 'r' }
const at = systemClock.now().getTime()
const settled = () => new Promise(resolve => setTimeout(resolve, 0)).then(() => new Promise(setImmediate))

/** A store whose rows outlast the keeper, a keeper that can be killed, and processes that find the next one. */
function service(processes: number) {
  const stored = new Map<string, number>()
  const store = {
    async add(rows: readonly SpentRow[]) {
      for (const { key, spent } of rows) stored.set(key, (stored.get(key) ?? 0) + spent)
    },
  }
  let keeper: Accounts | undefined
  const members = Array.from({ length: processes }, (_, id) => {
    const remote = remoteBudgets({
      async ask(reserve) {
        for (;;) {
          const at = keeper
          const answer = await at?.reserve(id, reserve)
          // Of a keeper that was killed no answer comes: it is asked again.
          if (answer !== undefined && at === keeper) return answer
        }
      },
      post: message => 'spent' in message && !('process' in message) && keeper?.spent(id, message.spent),
    })
    return { remote }
  })
  const begin = (left: readonly number[]) => {
    keeper = accounts({ clock: systemClock, log: silentLog(), store, left })
    keeper.load([...stored].map(([key, spent]) => ({ key, spent })))
    for (const [id, { remote }] of members.entries()) {
      const { open, spent } = remote.known()
      keeper.connected(id, open, spent, remote.stored)
    }
  }
  begin([])
  return {
    budgets: members.map(({ remote }) => remote.budgets),
    save: () => keeper?.save(),
    stored: () => [...stored].reduce((sum, [key, spent]) => sum + (key.startsWith('day/') ? spent : 0), 0),
    /** What it had in memory is gone. */
    kill() {
      keeper = undefined
      begin(members.map((_, id) => id))
    },
  }
}

it('no cap is passed over processes, all is stored, and nothing twice, whatever ends when and however often the keeper of the accounts is killed', async () => {
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('reserve' as const),
        by: fc.nat(2),
        bound: fc.integer({ min: 100, max: 400 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('settle' as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('save' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('kill' as const) }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 12, maxLength: 40, size: 'max' }), async steps => {
      const { budgets, save, stored, kill } = service(3)
      const open: { bound: number; settle: Reservation['settle'] }[] = []
      let spent = 0
      for (const one of steps) {
        if (one.do === 'reserve') {
          const got = await budgets[one.by]!.open(spender, caps).reserve(one.bound)
          if (got.ok) open.push({ bound: one.bound, settle: got.settle })
        } else if (one.do === 'settle') {
          const call = open.shift()
          const cost = Math.floor((call?.bound ?? 0) * one.share)
          call?.settle(cost)
          spent += cost
        } else if (one.do === 'save') {
          await settled()
          await save()
          // So a kill of all processes forgets nothing.
          expect(stored()).toBe(spent + open.reduce((sum, { bound }) => sum + bound, 0))
        } else kill()
        expect(spent + open.reduce((sum, { bound }) => sum + bound, 0)).toBeLessThanOrEqual(CAP)
      }
      for (const call of open) call.settle(0)
      await settled()
      await save()
      expect(stored()).toBe(spent)
    }),
    { numRuns: 100 },
  )
})

it('what a process had open when it ended counts as spent', async () => {
  const stored: SpentRow[] = []
  const keeper = accounts({
    clock: systemClock,
    log: silentLog(),
    left: [],
    store: { add: async rows => void stored.push(...rows) },
  })
  keeper.connected(1, [], [], () => undefined)
  expect(await keeper.reserve(1, [{ id: 1, spender, caps, bound: 700, at }])).toEqual([true])
  expect(await keeper.reserve(2, [{ id: 1, spender, caps, bound: 400, at }])).toMatchObject([
    { scope: 'day', used: 700 },
  ])
  keeper.gone(1)
  // What it said last is heard after its end.
  keeper.spent(1, [{ seq: 1, id: 1, spender, caps, cost: 100 }])
  expect(await keeper.reserve(1, [{ id: 2, spender, caps, bound: 50, at }])).toEqual([])
  expect(await keeper.reserve(2, [{ id: 2, spender, caps, bound: 301, at }])).toMatchObject([
    { scope: 'day', used: 700 },
  ])
  await keeper.save()
  expect(stored.find(({ key }) => key.startsWith('day/'))?.spent).toBe(700)
})

it('grants nothing before every process that an earlier keeper left has said what it has open', async () => {
  const keeper = accounts({ clock: systemClock, log: silentLog(), left: [1, 2], store: { add: async () => undefined } })
  keeper.connected(1, [], [], () => undefined)
  let answer: unknown
  const asked = keeper.reserve(1, [{ id: 9, spender, caps, bound: 600, at }]).then(got => {
    answer = got
  })
  await settled()
  expect(answer).toBeUndefined()
  keeper.connected(2, [{ id: 4, spender, caps, bound: 500, at }], [], () => undefined)
  await asked
  expect(answer).toMatchObject([{ scope: 'day', used: 500 }])
})

it('keeps nothing for a process that gave up before it was granted', async () => {
  const keeper = accounts({ clock: systemClock, log: silentLog(), left: [1, 2], store: { add: async () => undefined } })
  keeper.connected(1, [], [], () => undefined)
  const asked = keeper.reserve(1, [{ id: 9, spender, caps, bound: 600, at }])
  keeper.spent(1, [{ seq: 1, id: 9, spender, caps, cost: 0 }])
  keeper.connected(2, [], [], () => undefined)
  await asked
  expect(await keeper.reserve(2, [{ id: 1, spender, caps, bound: CAP, at }])).toEqual([true])
})

it('counts what a process had open whose end is heard of before it is', async () => {
  const keeper = accounts({ clock: systemClock, log: silentLog(), left: [1], store: { add: async () => undefined } })
  keeper.gone(1)
  keeper.connected(1, [{ id: 4, spender, caps, bound: 500, at }], [], () => undefined)
  expect(await keeper.reserve(2, [{ id: 1, spender, caps, bound: 501, at }])).toMatchObject([
    { scope: 'day', used: 500 },
  ])
})

it('refuses in the words of the person who has to act, where nothing keeps the accounts', async () => {
  const remote = remoteBudgets({
    ask: () => Promise.reject(new Error('the process that keeps budgets does not answer; try again')),
    post: () => undefined,
  })
  const got = await remote.budgets.open(spender, caps).reserve(1)
  expect(got).toMatchObject({ ok: false, away: 'the process that keeps budgets does not answer; try again' })
})

it("a request's own cap covers calls that it makes at once", async () => {
  const remote = remoteBudgets({ ask: async reserve => reserve.map(() => true as const), post: () => undefined })
  const account = remote.budgets.open(spender, { ...caps, request: 100 })
  const both = await Promise.all([account.reserve(60), account.reserve(60)])
  expect(both).toMatchObject([{ ok: true }, { ok: false, scope: 'request', limit: 100, used: 60 }])
})

it('what an earlier keeper stored of a day that is over stays with it, and takes nothing from the next', async () => {
  const rows: SpentRow[] = []
  const clock = manualClock(new Date('2026-01-02T00:00:01Z'))
  const keeper = accounts({
    clock,
    log: silentLog(),
    left: [1],
    store: { add: async added => void rows.push(...added) },
  })
  const late = { id: 1, spender, caps, bound: 700, at: Date.parse('2026-01-01T23:59:58Z'), isStored: true }
  keeper.connected(1, [late], [], () => undefined)
  keeper.spent(1, [{ seq: 1, id: 1, spender, caps, cost: 100, reserved: late }])
  await keeper.save()
  expect(rows.find(({ key }) => key === 'day/2026-01-02')?.spent).toBe(100)
})
