import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { rehearse } from '../../router/ope/rehearse.ts'
import { createRouter } from '../../router/router.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter } from './routers.ts'

let upstream: ScriptedUpstream
let running: TestRouter | undefined

beforeEach(async () => {
  upstream = await scriptedUpstream()
  // The cheap rung answers nothing, which no gate lets pass.
  upstream.always((response, seen, request) => {
    const text = seen.url.startsWith('/small') ? '' : 'fine'
    return answer(200, JSON.stringify(messagesAnswer(text)))(response, seen, request)
  })
})
afterEach(async () => {
  await running?.close()
  running = undefined
  await upstream.close()
})

const CONFIG = (learning: string) => `
price = [
  { model = "small/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "large/best", input_per_mtok = 5, output_per_mtok = 25 },
]
provider = [
  { id = "small", dialect = "messages", base_url = "${upstream.origin}/small", auth = "none" },
  { id = "large", dialect = "messages", base_url = "${upstream.origin}/large", auth = "none" },
]
learning = ${learning}
[[route]]
match = {}
mode = "enforce"
ladder = ["small/cheap", "large/best"]
gates = ["non-empty"]
`

const ASK = { model: 'auto', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }
const asked = async ({ post }: Pick<TestRouter, 'post'>, times: number, headers = {}) => {
  for (let i = 0; i < times; i++) expect((await post('/v1/messages', ASK, headers)).status).toBe(200)
}
const startsOf = (receipts: readonly TraceRecord[]) => receipts.map(({ policy }) => policy.start_rung)

describe('a learned start', () => {
  it('opens above a rung that fails once it has seen enough, and every receipt has the chance of its start', async () => {
    running = await testRouter({
      config: CONFIG('{ algorithm = "thompson", epsilon = 0.2, min_observations = 20 }'),
    })
    await asked(running, 10)
    // Of so many starts some explore, whatever is drawn, and what they saw makes the last ones sure.
    await asked(running, 120)
    await asked(running, 1, { 'x-router-mode': 'max' })
    await asked(running, 1, { 'x-router-mode': 'cost' })
    const receipts = await running.receipts()
    const [before, learned] = [receipts.slice(0, 10), receipts.slice(10, 130)]
    expect(new Set(before.map(({ policy }) => `${policy.id} ${policy.start_rung} ${policy.propensity}`))).toEqual(
      new Set(['static-ladder@1 0 1']),
    )
    for (const { policy, attempts } of learned) {
      expect(policy.id).toBe('thompson@1+eps')
      // Each start has half of the fifth that is explored, and of the rest its share of 64 draws.
      const share = ((policy.propensity - 0.1) / 0.8) * 64
      expect(Math.abs(share - Math.round(share))).toBeLessThan(1e-9)
      expect(attempts[0]!.rung).toBe(policy.start_rung)
    }
    expect(startsOf(learned).filter(rung => rung === 1).length).toBeGreaterThan(70)
    // A rung that never passes is started on only to explore, when it has failed often enough.
    const late = learned.slice(-20).filter(({ policy }) => policy.start_rung === 1)
    for (const { policy } of late) expect(policy.propensity).toBeGreaterThan(0.8)
    expect(receipts.slice(130).map(({ policy }) => [policy.id, policy.start_rung, policy.propensity])).toEqual([
      ['static-ladder@1+forced', 1, 1],
      ['static-ladder@1', 0, 1],
    ])

    // What was logged tells what either start would have cost: 0.0396 with the failed try, 0.033 without.
    const rehearsed = async (startRung: number) =>
      (await rehearse(running!.db, { target: { startRung }, metrics: ['cost'], span: {} }))[0]!
    expect((await rehearsed(1)).snips?.value).toBeCloseTo(0.033, 9)
    expect((await rehearsed(0)).snips?.value).toBeCloseTo(0.0396, 9)
  })

  it('goes on after a restart, and forgets nothing it has stored', async () => {
    const config = CONFIG('{ algorithm = "ucb", min_observations = 20, ucb_c = 0.1 }')
    running = await testRouter({ config })
    await asked(running, 12)
    const first = await running.receipts()
    expect(first.at(-1)?.policy).toMatchObject({ id: 'ucb@1', start_rung: 1, propensity: 1, explore: false })
    const again = createRouter({ config, db: running.db })
    const post: TestRouter['post'] = (path, body) =>
      again.fetch(
        new Request(`http://router${path}`, {
          method: 'POST',
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json' },
        }),
      )
    await asked({ post }, 1)
    await again.close()
    expect(startsOf(await running.receipts()).at(-1)).toBe(1)
  })
})
