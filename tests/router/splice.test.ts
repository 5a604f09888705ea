import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { spliceModel } from '../../router/enforce/upstream-request.ts'
import type { DialectName } from '../../shared/dialects/candidate.ts'
import { dialects } from '../../shared/dialects/dialects.ts'
import { chatAnswer, messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter } from './routers.ts'
import { draws, spelledBody } from './spelled-bodies.ts'

const NAMES = ['claude-haiku-4-5', 'a "quoted" \\ name', 'org/漢字:8b', '😀', 'x'.repeat(300)]
const BODIES = 100_000
const CALLS = 200

/** Of models that no table knows, so that nothing of a request has to be adapted: adapted-rungs.test.ts has the others. */
describe('the model that goes upstream', () => {
  it(`replaces the last top-level literal of ${BODIES} bodies in any spelling, and no other byte`, () => {
    let scanned = 0
    fc.assert(
      fc.property(fc.integer(), seed => {
        const draw = draws(seed)
        const { before, literal, after } = spelledBody(draw)
        const name = NAMES[draw() % NAMES.length]!
        const dialect: DialectName = draw() % 2 === 0 ? 'messages' : 'chat'
        const body = Buffer.from(before + literal + after)
        const scan = dialects[dialect].scan(body)
        if (!scan.ok || scan.facts.model === null) return false
        scanned++
        const due = Buffer.from(before + JSON.stringify(name) + after)
        return scan.facts.model.value === JSON.parse(literal) && due.equals(spliceModel(body, scan.facts.model, name))
      }),
      { numRuns: BODIES },
    )
    expect(scanned).toBeGreaterThanOrEqual(BODIES)
  })

  it('draws bodies that are JSON, and in which a lesser search would go wrong', () => {
    const seen = { repeated: 0, escaped: 0, nested: 0, notLast: 0 }
    for (let seed = 1; seed <= 2000; seed++) {
      const { before, literal, after } = spelledBody(draws(seed))
      const text = before + literal + after
      expect((JSON.parse(text) as { model: unknown }).model).toBe(JSON.parse(literal))
      const plain = text.split('"model"').length - 1
      if (plain > 1) seen.repeated++
      if (plain === 0) seen.escaped++
      if (/[[{].*[[{].*model/s.test(before.slice(1))) seen.nested++
      if (after.includes('model')) seen.notLast++
    }
    for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(100)
  })
})

describe('a running router', () => {
  const NAME = 'wire/"name" 漢'
  let upstream: ScriptedUpstream
  let running: TestRouter
  beforeAll(async () => {
    upstream = await scriptedUpstream()
    upstream.always((response, seen, request) => {
      const body = seen.url.endsWith('/messages') ? messagesAnswer('ok') : chatAnswer('ok')
      return answer(200, JSON.stringify(body))(response, seen, request)
    })
    const rows = (['messages', 'chat'] as const).map(
      dialect => `
[[provider]]
id = "${dialect}"
dialect = "${dialect}"
base_url = "${upstream.origin}"
[[model]]
id = "${dialect}/m"
upstream_model = '${NAME}'
[[price]]
model = "${dialect}/m"
input_per_mtok = 1
output_per_mtok = 5
[[route]]
match = { api = "${dialect}" }
mode = "enforce"
ladder = ["${dialect}/m"]
gates = ["non-empty"]`,
    )
    running = await testRouter({ config: rows.join('\n') })
  })
  afterAll(async () => {
    await running?.close()
    await upstream?.close()
  })

  it.each([
    ['messages', '/v1/messages'],
    ['chat', '/v1/chat/completions'],
  ] as const)(`sends ${CALLS} bodies of the %s dialect as they came, but for the model`, async (_, path) => {
    for (let seed = 1; seed <= CALLS; seed++) {
      const { before, literal, after } = spelledBody(draws(seed * 7919))
      upstream.seen.length = 0
      const got = await running.post(path, before + literal + after)
      expect([seed, got.status]).toEqual([seed, 200])
      await got.body?.cancel()
      expect(upstream.seen).toHaveLength(1)
      expect(upstream.seen[0]!.body.equals(Buffer.from(before + JSON.stringify(NAME) + after)), `seed ${seed}`).toBe(
        true,
      )
    }
  })
})
