import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import type { Db } from '../../shared/sql/db.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { candidates, claimAllStatement, claimStatement } from './claim-statement.ts'
import { engineLimits } from './engine-deps.ts'
import type { AskModel } from './models/model.ts'
import { engineFixture, type FixtureOptions, says } from './testing/engine-fixture.ts'

const ALONE = { withNodes: false, byServer: false }

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

/** A model whose answers are given one by one: each run stands in its call until it is let go. */
function heldModel() {
  const calls: { prompt: string; go: () => void }[] = []
  let free = false
  const ask: AskModel = ({ messages: [first] }, { signal }) =>
    new Promise((resolve, reject) => {
      const prompt = first?.role === 'user' ? first.text : ''
      if (free) return resolve(says('done'))
      calls.push({ prompt, go: () => resolve(says('done')) })
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  return {
    calls,
    ask,
    said: () => calls.map(({ prompt }) => prompt),
    letGo() {
      free = true
      for (const { go } of calls) go()
    },
  }
}

async function fixture(slots: number, options: FixtureOptions = {}) {
  const model = heldModel()
  const made = await engineFixture({
    ask: model.ask,
    agents: { other: {} },
    limits: { ...engineLimits, maxConcurrent: slots },
    ...options,
  })
  async function close() {
    model.letGo()
    await made.close()
  }
  open.push({ close })
  await made.engine.start()
  return { ...made, ...model, close }
}

const addTenant = (db: Db, id: string) =>
  db.execute({ sql: 'insert into tenants (id, name, created_ms) values (?, ?, 1)', args: [id, id] })

describe('slots for runs', () => {
  it('are all for a tenant that is alone', async () => {
    const { create, engine, said } = await fixture(4)
    for (const n of [1, 2, 3, 4, 5]) await create({ prompt: `p${n}` })
    engine.wake()
    await expect.poll(said).toHaveLength(4)
    expect(engine.active).toBe(4)
  })

  it('are never all held by one tenant of several, so that a run of another begins at once', async () => {
    const { create, engine, db, said } = await fixture(16)
    await addTenant(db, 'b')
    for (let n = 0; n < 40; n++) await create({ prompt: `default ${n}` })
    engine.wake()
    await expect.poll(said).toHaveLength(14)
    await create({ prompt: 'b' }, { tenantId: 'b' })
    engine.wake()
    await expect.poll(said).toContain('b')
    expect(engine.active).toBe(15)
  })

  it('go, when one is free, to the tenant with the fewest, then to its agent with the fewest, then to the oldest', async () => {
    const { create, engine, db, calls, said } = await fixture(4)
    await addTenant(db, 'b')
    let made = 0
    const queue = (prompt: string, more: { tenantId?: string; agentName?: string } = {}) =>
      create({ prompt }, { ...more, id: `run-${++made}` })
    for (const n of [1, 2, 3]) await queue(`a${n}`)
    engine.wake()
    await expect.poll(said).toHaveLength(3)
    await queue('a4')
    await queue('a5 other', { agentName: 'other' })
    for (const n of [1, 2, 3]) await queue(`b${n}`, { tenantId: 'b' })
    await queue('b4 other', { tenantId: 'b', agentName: 'other' })
    engine.wake()
    const order: string[] = []
    // Each answer lets one slot go, and the next question says to whom.
    for (let at = 0; at < 8; at++) {
      await expect.poll(() => calls.length).toBe(Math.min(9, at + 4))
      order.push(calls[at + 3]?.prompt ?? '')
      calls[at]?.go()
    }
    expect(order.filter(Boolean)).toEqual(['b1', 'b4 other', 'a5 other', 'a4', 'b2', 'b3'])
  })

  it('are free again where a process had to leave all of its runs, as after the sleep of a machine: it takes them up itself', async () => {
    const clock = manualClock(new Date('2026-01-02T03:04:05Z'))
    const limits = { ...engineLimits, maxConcurrent: 2, leaseMs: 1000, recoveryMs: 50 }
    const { create, runs, said, letGo } = await fixture(2, { clock, limits, claimsNewRuns: true })
    const ids = await Promise.all([1, 2, 3].map(n => create({ prompt: `p${n}` })))
    await expect.poll(said).toHaveLength(2)
    const asleep = () => {
      clock.advance(1500)
      return said().length
    }
    await expect.poll(asleep, { interval: 150, timeout: 5000 }).toBeGreaterThan(2)
    letGo()
    const statuses = () => Promise.all(ids.map(async id => (await runs.get(id))?.status))
    await expect.poll(statuses, { timeout: 5000 }).toEqual(ids.map(() => 'succeeded'))
  })

  it('are not looked for again and again while all that is due is beyond the share of its tenant', async () => {
    let claims = 0
    const { create, engine, db, said } = await fixture(2, {
      wrap: inner => ({
        ...inner,
        execute(statement) {
          if (typeof statement === 'object' && statement.sql.startsWith('update runs set')) claims++
          return inner.execute(statement)
        },
      }),
    })
    await addTenant(db, 'b')
    for (const n of [1, 2, 3]) await create({ prompt: `p${n}` })
    engine.wake()
    await expect.poll(said).toHaveLength(1)
    const before = claims
    await new Promise(resolve => setTimeout(resolve, 200))
    expect(claims - before).toBeLessThan(3)
  })

  it('are counted by each process for itself where several share a store, and each run is executed once', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'shares-'))
    try {
      const url = join(folder, 'x.db')
      const one = await fixture(4, { url })
      const two = await fixture(4, { url })
      await addTenant(one.db, 'b')
      for (let n = 0; n < 12; n++) await one.create({ prompt: `a${n}` })
      one.engine.wake()
      two.engine.wake()
      await expect.poll(() => one.calls.length + two.calls.length).toBe(6)
      await one.create({ prompt: 'b' }, { tenantId: 'b' })
      two.engine.wake()
      await expect.poll(two.said).toContain('b')
      const all = [...one.said(), ...two.said()]
      expect(new Set(all).size).toBe(all.length)
      for (const made of open.splice(0)) await made.close()
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  const OWNER = 'this process'
  const args = (most: number, held: readonly string[] = []) => [
    ...[OWNER, 1_000_000, 60_000, 'local', most],
    JSON.stringify(held),
  ]
  interface Waiting {
    tenant: string
    agent: string
    due: number
  }

  /** A store in which these runs wait, under the number of each. */
  async function waiting(runs: readonly Waiting[]) {
    const { db, create } = await fixture(0)
    for (const [at, { tenant, agent }] of runs.entries()) {
      await create({}, { id: String(at), tenantId: tenant, agentName: agent })
    }
    for (const [at, { due }] of runs.entries()) {
      await db.execute({ sql: 'update runs set due_ms = ? where id = ?', args: [due, String(at)] })
    }
    return db
  }

  it('are given in this order however many agents wait', async () => {
    const many = fc.array(
      fc.record({ tenant: fc.constantFrom('a', 'a', 'a', 'b'), agent: fc.integer({ min: 0, max: 90 }) }),
      { minLength: 70, maxLength: 160 },
    )
    const crowd = fc.record({
      many,
      alone: fc.boolean(),
      first: fc.integer({ min: 0, max: 90 }),
      agents: fc.integer({ min: 1, max: 6 }),
      most: fc.integer({ min: 1, max: 4 }),
    })
    await fc.assert(
      fc.asyncProperty(crowd, async ({ many, alone, first, agents, most }) => {
        // Runs of few agents stand before all others.
        const runs = [...Array.from({ length: first }, (_, at) => ({ tenant: 'a', agent: at % agents })), ...many].map(
          ({ tenant, agent }, at) => {
            const own = alone ? 'a' : tenant
            return { tenant: own, agent: `${own} ${agent}`, due: at + 1 }
          },
        )
        const db = await waiting(runs)
        const left = new Map(runs.map((run, at) => [String(at), run]))
        const here: Waiting[] = []
        for (let claims = 0; claims < 3; claims++) {
          const expected = []
          const held = [...here]
          const open = new Map(left)
          for (let place = 0; place < most; place++) {
            const inOrder = [...open].sort(
              ([, one], [, two]) =>
                held.filter(run => run.tenant === one.tenant).length -
                  held.filter(run => run.tenant === two.tenant).length ||
                held.filter(run => run.agent === one.agent).length -
                  held.filter(run => run.agent === two.agent).length ||
                one.due - two.due,
            )
            const [id, run] = inOrder[0]!
            expected.push(id)
            open.delete(id)
            held.push(run)
          }
          const taken = runs.flatMap((_, at) => (left.has(String(at)) ? [] : [String(at)]))
          const asked = [...args(most, taken), 1000, 1000]
          const { rows } = await db.execute({ sql: claimStatement(ALONE), args: asked })
          expect(rows.map(row => String(row.id)).sort()).toEqual(expected.sort())
          for (const id of expected) {
            here.push(left.get(id)!)
            left.delete(id)
          }
        }
      }),
      { numRuns: 30 },
    )
  })

  it('are given without a step through all agents where the oldest runs are of enough agents', async () => {
    const queue = (length: number, agent: (at: number) => string) =>
      Array.from({ length }, (_, at) => ({ tenant: 'a', agent: agent(at), due: at + 1 }))
    const counted = `${candidates(ALONE)} select count(*) as lanes from lanes`
    const lanes = async (runs: readonly Waiting[], most: number) =>
      Number((await (await waiting(runs)).execute({ sql: counted, args: args(most) })).rows[0]?.lanes)
    expect(
      await lanes(
        queue(300, at => `agent ${at}`),
        16,
      ),
    ).toBe(0)
    expect(
      await lanes(
        queue(300, at => `agent ${at % 20}`),
        16,
      ),
    ).toBe(0)
    // All of the oldest are of one agent: those of others are looked for.
    expect(
      await lanes(
        queue(300, at => `agent ${Math.max(0, at - 200)}`),
        16,
      ),
    ).toBe(100)
    const two = queue(300, at => `agent ${at}`).map((run, at) => ({ ...run, tenant: at === 299 ? 'b' : 'a' }))
    expect(await lanes(two, 16)).toBe(300)
  })

  it('are given by a statement that reads indexes of what is open only', async () => {
    const { db, create } = await fixture(0)
    for (let n = 0; n < 100; n++) await create({ prompt: `${n}` })
    for (const shared of [ALONE, { withNodes: true, byServer: false }, { withNodes: false, byServer: true }]) {
      const { rows } = await db.execute({
        sql: `explain query plan ${claimStatement(shared)}`,
        args: [uuidv7(), 1, 1, 'local', 4, '[]', 4, 3],
      })
      const ofAll = await db.execute({
        sql: `explain query plan ${claimAllStatement(shared)}`,
        args: [uuidv7(), 1, 1, 'local', 4, '[]'],
      })
      for (const [found, fewest] of [
        [rows, 5],
        [ofAll.rows, 2],
      ] as const) {
        const steps = found.map(row => String(row.detail)).filter(detail => / (runs|next|one) /.test(detail))
        expect(steps.length).toBeGreaterThanOrEqual(fewest)
        for (const step of steps) expect(step).toMatch(/^SEARCH /)
      }
    }
  })
})
