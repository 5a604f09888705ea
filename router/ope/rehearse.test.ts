import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import { loadConfig } from '../config/load-config.ts'
import { routerSteps } from '../schema/steps.ts'
import { sampleTrace } from '../traces/testing/records.ts'
import { rehearse } from './rehearse.ts'
import { storedTraces } from './testing/stored-traces.ts'

let folder: string
let db: Db

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-ope-'))
  db = await openDb(join(folder, 'router.db'), { synchronous: 'normal' })
  await migrate(db, 'router', routerSteps)
})
afterEach(async () => {
  db.close()
  await rm(folder, { recursive: true, force: true })
})

interface Start {
  rung?: number
  propensity?: number
  cost?: number | null
  at?: number
  tenant?: string
  failed?: boolean
  forced?: boolean
  session?: string
}

const MODELS = ['a/small', 'b/large']

function traceOf({
  rung = 0,
  propensity = 0.5,
  cost = 0.01,
  at = 0,
  tenant = 'default',
  forced,
  session,
}: Start): UnsealedTrace {
  const model = MODELS[rung]!
  const sample = sampleTrace({ tenant, cost, model, at: Date.UTC(2026, 0, 1) + at, ...(session && { session }) })
  return {
    ...sample,
    policy: { ...sample.policy, id: forced ? 'thompson@1+forced' : 'thompson@1+eps', start_rung: rung, propensity },
    attempts: sample.attempts.map(one => ({ ...one, rung, provider: model.split('/')[0]! })),
    final: { ...sample.final, served_rung: rung },
  }
}

const keep = (starts: readonly Start[]) =>
  storedTraces(
    db,
    starts.map(start => ({ trace: traceOf(start), failed: start.failed })),
  )

const CONFIG = (ladder: readonly string[], rest: object = {}) => {
  const loaded = loadConfig(
    {
      price: MODELS.map(model => ({ model, input_per_mtok: 1, output_per_mtok: 2 })),
      provider: ['a', 'b'].map(id => ({ id, dialect: 'messages', base_url: 'http://127.0.0.1:9', auth: 'none' })),
      route: [{ match: {}, mode: 'enforce', profile: 'cost', ladder, gates: ['non-empty'] }],
      ...rest,
    },
    { hostHasProcesses: false, builtinPrices: { find: () => undefined } },
  )
  if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join('\n'))
  return loaded.config
}

describe('a rehearsal over a store', () => {
  const starts: Start[] = [
    { rung: 1, propensity: 0.5, cost: 0.04, failed: false },
    { rung: 0, propensity: 0.5, cost: 0.01, failed: true },
    { rung: 1, propensity: 0.25, cost: 0.08, failed: true },
    { rung: 0, propensity: 0.75, cost: 0.03 },
  ]

  it('weighs what was logged by its propensities, for cost and for failure', async () => {
    await keep(starts)
    const [cost, failure] = await rehearse(db, { target: { startRung: 1 }, metrics: ['cost', 'failure'], span: {} })
    expect(cost).toMatchObject({ metric: 'cost', n: 4, coverage: 0.5, ess: 1.8 })
    expect(cost!.ips?.value).toBeCloseTo(0.1, 12)
    expect(cost!.snips?.value).toBeCloseTo(0.4 / 6, 12)
    expect(cost!.dr?.value).toBeCloseTo(0.07, 12)
    expect(failure).toMatchObject({ metric: 'failure', n: 3 })
    expect(failure!.ips?.value).toBeCloseTo(4 / 3, 12)
    expect(failure!.snips?.value).toBeCloseTo(4 / 6, 12)
    expect(cost).not.toHaveProperty('direct')
  })

  it.each([
    [8, []],
    [5, [expect.stringMatching(/^the 8 requests are of 5 sessions/)]],
  ])('says of 8 requests of %i sessions whether its intervals are too narrow', async (sessions, said) => {
    await keep(Array.from({ length: 8 }, (_, i) => ({ rung: i % 2, session: `s${i % sessions}` })))
    const [cost] = await rehearse(db, { target: { startRung: 1 }, metrics: ['cost'], span: {} })
    expect(cost!.warnings.filter(one => one.includes('sessions'))).toEqual(said)
  })

  it('leaves out what a header started, instead of counting it as rows that cost nothing', async () => {
    const drawn = Array.from({ length: 20 }, (_, i) => ({ rung: i % 2, propensity: 0.5, cost: 0.0015 }))
    const forced = Array.from({ length: 20 }, () => ({ rung: 1, propensity: 1, cost: 0.9, forced: true, failed: true }))
    await keep([...drawn, ...forced])
    const [cost, failure] = await rehearse(db, { target: { startRung: 0 }, metrics: ['cost', 'failure'], span: {} })
    expect([cost!.n, cost!.ips?.value, failure!.n]).toEqual([20, expect.closeTo(0.0015, 12), 0])
    expect(cost!.warnings).toContain(
      'a header or a floor decided the start of 20 of 40 requests: they are left out of ips, snips and dr',
    )
  })

  it('warns of starts that were drawn without exploration, where the rehearsed one may have had no chance', async () => {
    await storedTraces(
      db,
      starts.map(start => {
        const trace = traceOf(start)
        return { trace: { ...trace, policy: { ...trace.policy, id: 'thompson@1' as const } } }
      }),
    )
    const [cost] = await rehearse(db, { target: { startRung: 1 }, metrics: ['cost'], span: {} })
    expect(cost!.warnings).toContainEqual(expect.stringMatching(/^2 of 4 starts were drawn without exploration/))
  })

  it('keeps to a tenant and a window, and leaves out what was not routed', async () => {
    await keep([...starts.map((start, i) => ({ ...start, at: i * 60_000 })), { rung: 1, tenant: 'other', cost: 9 }])
    await storedTraces(db, [{ trace: sampleTrace({ tenant: 'seen', mode: 'observe' }) }])
    const n = async (span: object) => (await rehearse(db, { target: { startRung: 1 }, metrics: ['cost'], span }))[0]!.n
    expect(await n({})).toBe(5)
    expect(await n({ tenant: 'default' })).toBe(4)
    expect(await n({ tenant: 'seen' })).toBe(0)
    const [since, until] = [60_000, 180_000].map(at => new Date(Date.UTC(2026, 0, 1) + at))
    expect(await n({ since })).toBe(3)
    expect(await n({ since, until })).toBe(2)
  })

  it('says what it could not count', async () => {
    await keep([...starts, { rung: 1, cost: null }, { rung: 0 }, { rung: 0 }, { rung: 1 }])
    const [cost, failure] = await rehearse(db, { target: { startRung: 1 }, metrics: ['cost', 'failure'], span: {} })
    expect(cost!.warnings).toContain('1 of 8 requests have no known cost and are left out')
    expect(failure!.warnings).toContainEqual(expect.stringMatching(/^no outcome was reported of 5 of 8 requests/))
  })

  it('rehearses a config by the models it would start with, and walks its ladder', async () => {
    await keep(starts)
    const target = { config: CONFIG(['b/large']) }
    const [cost, failure] = await rehearse(db, { target, metrics: ['cost', 'failure'], span: {} })
    expect(cost!.ips?.value).toBeCloseTo(0.1, 12)
    // Only what was answered by that model can be walked: the two that cost 0.04 and 0.08, without gates of a price.
    expect(cost!.direct).toMatchObject({ n: 2, coverage: 0.5 })
    expect(cost!.direct?.rehearsed?.value).toBeCloseTo(0.06, 12)
    expect(cost!.warnings).toContainEqual(expect.stringMatching(/^only 50\.0 % of the requests could be walked/))
    expect(failure!.direct).toMatchObject({ n: 2, coverage: 0.5, rehearsed: { value: 0.5 } })
    const same = await rehearse(db, { target: { config: CONFIG(MODELS) }, metrics: ['cost'], span: {} })
    expect(same[0]!.direct).toMatchObject({ n: 2, coverage: 0.5 })
    expect(same[0]!.direct?.rehearsed).toEqual(same[0]!.direct?.logged)
  })

  it('says what a receipt cannot tell of a config', async () => {
    await keep(starts)
    const route = [{ match: { header: { 'x-team': 'a' } }, mode: 'enforce', ladder: MODELS }]
    const config = CONFIG(MODELS, { route, learning: { algorithm: 'ucb' } })
    const [cost] = await rehearse(db, { target: { config }, metrics: ['cost'], span: {} })
    expect([cost!.n, cost!.direct?.n]).toEqual([0, 0])
    expect(cost!.warnings).toEqual([
      '4 routed requests would not be routed by this config and are left out',
      expect.stringMatching(/^receipts hold no headers/),
      expect.stringMatching(/^the learned start of this config is left out/),
    ])
  })
})
