import { describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { fromUsd } from '../../shared/money/money.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { resolveKnobs } from '../policy/knobs.ts'
import { configOf } from '../policy/testing/route-of.ts'
import { routerSteps } from '../schema/steps.ts'
import { sampleTrace } from '../traces/testing/records.ts'
import { type DrawAsk, learner } from './learner.ts'
import { learningStore } from './save-learning.ts'

const config = configOf(`
price = [
  { model = "a/small", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "a/large", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [{ id = "a", dialect = "messages", base_url = "http://127.0.0.1:9", auth = "none" }]
learning = { algorithm = "thompson", epsilon = 0.3, min_observations = 20 }
[[route]]
mode = "enforce"
ladder = ["a/small", "a/large"]
sticky_ttl_s = 300
`)
const route = config.routes[0]!
const { features } = sampleTrace().request
const other = { ...features, agent: 'codex' }
const tokens = { uncached: 1000, cache_write_5m: 0, cache_write_1h: 0, cache_read: 0, output: 200 }
const climb = [
  { rung: 0, passed: false, tokens, cost: fromUsd(0.01) },
  { rung: 1, passed: true, tokens, cost: fromUsd(0.02) },
]

const fresh = (secret = 1) => learner({ sha256, secret: new Uint8Array(32).fill(secret) })
const ask = (over: Partial<DrawAsk> = {}): DrawAsk => ({
  traceId: 'trace-1',
  tenantId: 't',
  route,
  features,
  eligible: [0, 1],
  session: undefined,
  settings: config.learning,
  knobs: resolveKnobs('balanced', route, config.learning, false),
  ...over,
})
const teach = (to: ReturnType<typeof fresh>, requests: number, seen = features) => {
  for (let i = 0; i < requests; i++) to.learn('t', route.fingerprint, seen, climb, 0.995)
}

describe('a learner', () => {
  it('says nothing until it has seen enough, then of the context, else of the route', () => {
    const one = fresh()
    expect(one.draw(ask())).toBeUndefined()
    teach(one, 9)
    expect(one.draw(ask())).toBeUndefined()
    teach(one, 1)
    expect(one.draw(ask())?.chances).toEqual([0.15, 0.85])
    expect(one.draw(ask({ features: other }))?.chances).toEqual([0.15, 0.85])
    expect(one.draw(ask({ tenantId: 'someone-else' }))).toBeUndefined()
    expect(one.draw(ask({ knobs: resolveKnobs('cost', route, config.learning, false) }))).toBeUndefined()
  })

  it('draws the same for a trace again, and no one without the secret can tell what', () => {
    const [one, same, foreign] = [fresh(), fresh(), fresh(2)]
    for (const each of [one, same, foreign]) teach(each, 20)
    const draws = (of: typeof one) => Array.from({ length: 40 }, (_, i) => of.draw(ask({ traceId: `t${i}` }))?.rung)
    expect(draws(same)).toEqual(draws(one))
    expect(draws(foreign)).not.toEqual(draws(one))
    expect(new Set(draws(one))).toEqual(new Set([0, 1]))
  })

  it('goes on from what is stored, each tenant and route for itself', async () => {
    const db = await openDb(':memory:')
    await migrate(db, 'router', routerSteps)
    const store = learningStore(db)
    const one = fresh()
    teach(one, 15)
    teach(one, 3, other)
    const taken = one.takeUnsaved()
    expect(one.takeUnsaved()).toEqual([])
    await store.put(taken)
    await store.put(taken)
    const again = fresh()
    again.load(await store.all())
    expect(again.draw(ask())).toEqual(one.draw(ask()))
    expect(again.draw(ask({ features: other }))).toEqual(one.draw(ask({ features: other })))
    one.returnUnsaved(taken)
    expect(one.takeUnsaved()).toEqual(taken)
    db.close()
  })

  it('keeps the contexts that were seen last, and the route as a whole', () => {
    const one = fresh()
    teach(one, 20)
    for (let i = 0; i < 300; i++) teach(one, 1, { ...features, agent: `agent-${i}` })
    const [kept] = one.takeUnsaved()
    expect(Object.keys(kept!.contexts)).toHaveLength(200)
    expect(kept!.contexts['']?.seen).toBe(640)
  })
})
