import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { parseKeys } from '../../router/auth/keys.ts'
import { serveRouter } from '../../router/host/node.ts'
import type { RouterOptions } from '../../router/router.ts'
import { storedFeedback, storedRecords } from '../../router/traces/stored-records.ts'
import { verifyRecords } from '../../router/traces/verify.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { recordChainChecker } from '../../shared/sign/record-chain.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import { capabilities } from '../../shared/wire/router/capabilities.ts'
import { evals } from '../../shared/wire/router/evals.ts'
import { type FeedbackResult, feedbackRecord, feedbackResult } from '../../shared/wire/router/feedback.ts'
import { traceDetail } from '../../shared/wire/router/traces.ts'
import { eventually } from '../eventually.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type TestRouter, testRouter } from './routers.ts'

const ACME = 'acme-secret-of-24-characters'
const OTHER = 'other-secret-of-24-characters'
const OPS = 'ops-secret-of-24-characters-'

const config = (origin: string, { route = '', rest = '', gates = '["graded"]' } = {}) => `version = 1
price = [
  { model = "up/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "up/best", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [{ id = "up", dialect = "messages", base_url = "${origin}", auth = "none" }]
gate = [{ id = "graded", kind = "function", name = "graded" }]
${rest}
[[route]]
match = { task = "watch" }
mode = "observe"
[[route]]
match = {}
mode = "enforce"
ladder = ["up/cheap", "up/best"]
gates = ${gates}
${route}
`

/** Passes, with the number that the answer consists of as its score. */
const GATES: RouterOptions['gates'] = {
  functions: { graded: ({ candidate }) => ({ verdict: 'pass', score: Number(candidate) }) },
}
const ASK = { model: 'auto', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }

let upstream: ScriptedUpstream
let running: TestRouter
let calls = 0

beforeAll(async () => {
  upstream = await scriptedUpstream()
})
afterAll(() => upstream.close())
afterEach(() => running?.close())

async function start(parts: Parameters<typeof config>[1] = {}, options: Partial<RouterOptions> = {}) {
  upstream.always((response, seen, request) => {
    const { model, score = '1' } = JSON.parse(String(seen.body)) as { model: string; score?: string }
    const body = { ...messagesAnswer(score, model), id: `msg_${++calls}` }
    return answer(200, JSON.stringify(body), { 'request-id': `req_${calls}` })(response, seen, request)
  })
  running = await testRouter({
    config: config(upstream.origin, parts),
    gates: GATES,
    env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin },
    ...options,
  })
}

/** One answer through the router, with everything that it may be called by later. */
async function ask(headers: Record<string, string> = {}, body: object = {}) {
  const own = `own-${++calls}`
  const got = await running.post('/v1/messages', { ...ASK, ...body }, { 'x-request-id': own, ...headers })
  const { id } = (await got.json()) as { id: string }
  return {
    status: got.status,
    traceId: got.headers.get('x-router-trace-id')!,
    responseId: id,
    upstreamId: got.headers.get('request-id')!,
    own,
    rung: got.headers.get('x-router-served-rung'),
  }
}

async function report(body: object, headers: Record<string, string> = {}): Promise<FeedbackResult> {
  const got = await running.post('/v1/feedback', body, headers)
  const said: unknown = await got.json()
  expect([got.status, said]).toEqual([202, expect.anything()])
  return feedbackResult.parse(said)
}

const get = async (path: string, headers: Record<string, string> = {}) =>
  running.router.fetch(new Request(`http://router${path}`, { headers }))
const sealed = (traceId: string) =>
  eventually(async () => {
    expect(traceDetail.parse(await (await get(`/-/traces/${traceId}`)).json()).pending).toBe(false)
  })
const gauge = async (name: string) =>
  Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(await (await get('/metrics')).text())?.[1])
const outcome = (request_id: string, word: 'correct' | 'incorrect' | 'unknown', reporter?: string) => ({
  request_id,
  outcome: word,
  ...(reporter && { reporter }),
})

describe('feedback', () => {
  beforeEach(() => start())

  it('is taken in the same tick as the answer, in both shapes and by every kind of id', async () => {
    for (const kind of ['traceId', 'responseId', 'upstreamId', 'own'] as const) {
      const asked = await ask()
      const a = await report(outcome(asked[kind], 'correct'))
      const b = await report({ trace_id: asked[kind], gate_id: 'ci', verdict: 'pass', reporter: 'ci', score: 0.5 })
      expect([a.trace_id, b.trace_id]).toEqual([asked.traceId, asked.traceId])
      expect([a.status, a.gate_id, a.verdict, b.gate_id]).toEqual(['recorded', 'outcome', 'pass', 'ci'])
      const detail = traceDetail.parse(await (await get(`/-/traces/${asked.traceId}`)).json())
      expect(detail.feedback.map(({ feedback_id }) => feedback_id)).toEqual([a.feedback_id, b.feedback_id])
    }
  })

  it('takes the newest of several traces with one id', async () => {
    await ask({ 'x-request-id': 'again' })
    const second = await ask({ 'x-request-id': 'again' })
    expect((await report(outcome('again', 'correct'))).trace_id).toBe(second.traceId)
  })

  it('has no second effect when it is repeated, and corrects its effect when it is changed', async () => {
    const { traceId } = await ask()
    const first = await report(outcome(traceId, 'correct'))
    expect(first.serve_threshold).toBeCloseTo(0.5 - 0.02 * 0.1, 12)
    const again = await report(outcome(traceId, 'correct'))
    expect(again).toEqual({ ...first, status: 'duplicate' })
    const changed = await report(outcome(traceId, 'incorrect'))
    expect([changed.status, changed.feedback_id === first.feedback_id]).toEqual(['updated', false])
    expect(changed.serve_threshold).toBeCloseTo(0.5 + 0.02 * 0.9, 12)
    expect(await gauge('router_realized_served_failure')).toBe(1)
    const withdrawn = await report(outcome(traceId, 'unknown'))
    expect(withdrawn.serve_threshold).toBeCloseTo(0.5, 12)
    expect(await gauge('router_realized_served_failure')).toBe(0)
    const { feedback } = traceDetail.parse(await (await get(`/-/traces/${traceId}`)).json())
    expect(feedback.map(({ supersedes }) => supersedes)).toEqual([undefined, first.feedback_id, changed.feedback_id])
  })

  it('counts a trace as failed while any reporter says so', async () => {
    const { traceId } = await ask()
    const word = async (who: string, verdict: 'correct' | 'incorrect' | 'unknown') =>
      (await report(outcome(traceId, verdict, who))).serve_threshold
    expect(await word('a', 'correct')).toBeCloseTo(0.498, 12)
    expect(await word('b', 'incorrect')).toBeCloseTo(0.518, 12)
    expect(await word('c', 'correct')).toBeCloseTo(0.518, 12)
    expect(await word('b', 'correct')).toBeCloseTo(0.498, 12)
    await sealed(traceId)
    expect(evals.parse(await (await get('/-/evals')).json())).toMatchObject({
      outcomes: { reported: 1, failed: 0, served_failure: 0 },
      calibration: [{ route_ix: 1, n: 1, method: 'aci', state: 'not_certified' }],
    })
  })

  it('raises the gauge with failures, lowers it with successes, and both survive a restart', async () => {
    expect([await gauge('router_serve_threshold'), await gauge('router_realized_served_failure')]).toEqual([0.5, 0])
    await report(outcome((await ask()).traceId, 'incorrect'))
    expect(await gauge('router_serve_threshold')).toBeCloseTo(0.518, 12)
    await report(outcome((await ask()).traceId, 'correct'))
    const threshold = await gauge('router_serve_threshold')
    expect(threshold).toBeCloseTo(0.516, 12)
    expect(await gauge('router_realized_served_failure')).toBe(0.5)
    const page = await (await get('/metrics')).text()
    for (const line of [
      'router_route_calibration_n{route="1",tenant="default"} 2',
      'router_route_certified{route="1",tenant="default"} 0',
      'router_feedback_total{status="recorded"} 2',
      'router_outcomes_total{verdict="fail"} 1',
    ]) {
      expect(page).toContain(line)
    }
    // Another process on the same store.
    const { createRouter } = await import('../../router/router.ts')
    const next = createRouter({ db: running.db, config: config(upstream.origin), gates: GATES })
    const text = await (await next.fetch(new Request('http://router/metrics'))).text()
    expect(text).toContain(`router_serve_threshold ${threshold}\n`)
    expect(text).toContain('router_realized_served_failure 0.5\n')
    await next.close()
  })

  it('serves what scores at the threshold or more, and climbs from the rest', async () => {
    const served = async (score: string) => (await ask({}, { score })).rung
    // The upstream gives the same score on both rungs: below the threshold the best attempt is served, the higher rung of two equals.
    expect([await served('0.5'), await served('0.49')]).toEqual(['0', '1'])
    for (let i = 0; i < 3; i++) await report(outcome((await ask()).traceId, 'incorrect'))
    expect([await served('0.5'), await served('0.56')]).toEqual(['1', '0'])
  })

  it('certifies after clean answers of 47 sessions, says what that means, shows it, and takes it back when answers speak against it', async () => {
    await running.close()
    await start({ rest: '[calibration]\nfeedback_delay_s = 0\n' })
    const state = async () =>
      capabilities.parse(await (await get('/v1/capabilities')).json()).calibration.map(({ state, n }) => [state, n])
    expect(await state()).toEqual([['not_certified', 0]])
    let sessions = 0
    const inOwnSession = () => ask({ 'x-router-session': `session ${sessions++}` })
    for (let i = 0; i < 46; i++) await report(outcome((await inOwnSession()).traceId, 'correct'))
    expect(await state()).toEqual([['not_certified', 46]])
    // What the sessions say that were heard already is no more evidence of the others.
    for (let i = 0; i < 10; i++) {
      await report(outcome((await ask({ 'x-router-session': 'session 0' })).traceId, 'correct'))
    }
    expect(await state()).toEqual([['not_certified', 56]])
    await report(outcome((await inOwnSession()).traceId, 'correct'))
    expect(await state()).toEqual([['certified', 57]])
    const { calibration } = capabilities.parse(await (await get('/v1/capabilities')).json())
    expect(calibration[0]).toMatchObject({ reported: 57, failed: 0, sessions: 47, fewest: 47, threshold_acts: true })
    expect(calibration[0]?.claim).toMatch(
      /^of all answers that this route serves .* at most 10 % fail; .* at most 5 %, /,
    )
    for (let i = 0; i < 2; i++) await report(outcome((await ask()).traceId, 'incorrect'))
    expect(await state()).toEqual([['not_certified', 59]])
    expect(await gauge('router_route_certified')).toBe(0)
  })

  it('counts outcomes for a certificate once their answers are old enough, also where no report follows, and says so before', async () => {
    await running.close()
    await start({ rest: '[calibration]\nfeedback_delay_s = 1\n' })
    const state = async () => capabilities.parse(await (await get('/v1/capabilities')).json()).calibration[0]
    const answers = await Promise.all(Array.from({ length: 47 }, (_, i) => ask({ 'x-router-session': `session ${i}` })))
    for (const { traceId } of answers) await report(outcome(traceId, 'correct'))
    const before = await state()
    expect(before).toMatchObject({ state: 'not_certified', reported: 47, feedback_delay_s: 1 })
    expect(before?.counted).toBeLessThan(47)
    expect(before?.note).toMatch(
      /^\d+ of 47 reported outcomes do not count for a certificate yet: each counts once its answer is 1 second old/,
    )
    expect(before?.claim).toMatch(/and failures are reported within 1 second$/)
    await eventually(async () => expect(await state()).toMatchObject({ state: 'certified', counted: 47 }))
    expect((await state())?.note).toBeUndefined()
    await eventually(async () => expect(await gauge('router_route_certified')).toBe(1))
  })

  it('answers who looks while the store takes no write', async () => {
    await running.close()
    await start({ rest: '[calibration]\nfeedback_delay_s = 1\n' })
    const { traceId } = await ask()
    await report(outcome(traceId, 'correct'))
    const { write } = running.db
    const held = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    running.db.write = async statements => {
      asked.resolve()
      await held.promise
      return write(statements)
    }
    // The outcome is old enough by then, and looking at it would write.
    await new Promise(resolve => setTimeout(resolve, 1100))
    const page = await get('/metrics')
    await asked.promise
    expect(page.status).toBe(200)
    held.resolve()
    await eventually(async () => {
      const { calibration } = capabilities.parse(await (await get('/v1/capabilities')).json())
      expect(calibration[0]).toMatchObject({ reported: 1, counted: 1 })
    })
  })

  it('says what it takes', async () => {
    const caps = capabilities.parse(await (await get('/v1/capabilities')).json())
    expect(caps.feedback).toEqual({
      path: '/v1/feedback',
      outcomes: ['correct', 'incorrect', 'unknown'],
      verdicts: ['pass', 'fail', 'abstain'],
    })
  })

  it.each([
    ['an unknown outcome', { request_id: 'x', outcome: 'right' }, /outcome.*'correct', 'incorrect', 'unknown'/],
    [
      'a bad verdict',
      { trace_id: 'x', gate_id: 'g', verdict: 'ok', reporter: 'r' },
      /verdict.*'pass', 'fail', 'abstain'/,
    ],
    ['a score above 1', { request_id: 'x', outcome: 'correct', score: 1.5 }, /score/],
    ['mixed shapes', { request_id: 'x', outcome: 'correct', verdict: 'pass' }, /unknown key: verdict/],
    ['an unknown key', { request_id: 'x', outcome: 'correct', note: '' }, /unknown key: note/],
    ['no outcome', { request_id: 'x' }, /outcome is required/],
    ['no reporter', { trace_id: 'x', gate_id: 'g', verdict: 'pass' }, /reporter is required/],
    ['a long reporter', { request_id: 'x', outcome: 'correct', reporter: 'r'.repeat(129) }, /reporter.*128/],
    ['an empty id', { request_id: '', outcome: 'correct' }, /request_id/],
    ['a NUL', { request_id: 'x', outcome: 'correct', reporter: 'a\0' }, /reporter holds a NUL/],
    ['no object', ['x'], /object/],
  ])('refuses %s with 400 and names it', async (_, body, message) => {
    const got = await running.post('/v1/feedback', body)
    const { error } = (await got.json()) as { error: { type: string; message: string } }
    expect([got.status, error.type]).toEqual([400, 'bad_request'])
    expect(error.message).toMatch(message)
  })

  it('answers 404 for an unknown trace, 413 for a long body and 405 for another method', async () => {
    const got = await running.post('/v1/feedback', outcome('nothing', 'correct'))
    expect([got.status, await got.json()]).toEqual([
      404,
      { error: { type: 'not_found', message: 'there is no trace with the id nothing' } },
    ])
    const long = await running.post('/v1/feedback', { request_id: 'x'.repeat(20_000), outcome: 'correct' })
    expect(long.status).toBe(413)
    const wrong = await get('/v1/feedback')
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST'])
  })

  it('keeps half a character as the sign that stands for one', async () => {
    const { traceId } = await ask()
    const text = `{"request_id":"${traceId}","outcome":"correct","reporter":"a\\ud800"}`
    const got = await running.post('/v1/feedback', text)
    expect(got.status).toBe(202)
    const { feedback } = traceDetail.parse(await (await get(`/-/traces/${traceId}`)).json())
    expect(feedback[0]?.reporter).toBe('a\ufffd')
  })

  it('leaves a chain that verify checks, and an edit of a row shows', async () => {
    for (let i = 0; i < 5; i++) await report(outcome((await ask()).traceId, i % 2 ? 'correct' : 'incorrect'))
    const records = await running.receipts()
    expect(records).toHaveLength(5)
    const { rows } = await running.db.execute('select body from feedback order by seq')
    const chain = recordChainChecker()
    for (const row of rows) expect(chain.push(feedbackRecord.parse(JSON.parse(String(row.body))))).toBeUndefined()
    const verify = () =>
      verifyRecords({
        records: storedRecords(running.db),
        feedback: storedFeedback(running.db),
        sha256: nativeSha256,
      })
    expect((await verify()).valid).toBe(true)
    // What counts are made from: the record beside it says something else.
    await running.db.execute(`update feedback set verdict = 'pass' where seq = 4`)
    expect(await verify()).toMatchObject({ valid: false, tenants: [{ broken_at: 4, reason: 'feedback_columns' }] })
    await running.db.execute(`update feedback set verdict = 'fail' where seq = 4`)
    expect((await verify()).valid).toBe(true)
    await running.db.execute(`update feedback set body = replace(body, '"fail"', '"pass"') where seq = 2`)
    expect(await verify()).toMatchObject({ valid: false, tenants: [{ broken_at: 2, reason: 'feedback_hash' }] })
  })

  it('does the same for a program that holds the router', async () => {
    const { traceId } = await ask()
    const taken = await running.router.feedback({ request_id: traceId, outcome: 'incorrect' })
    expect(taken).toMatchObject({ status: 'recorded', verdict: 'fail', trace_id: traceId })
    expect((await report(outcome(traceId, 'incorrect'))).status).toBe('duplicate')
    await expect(running.router.feedback({ request_id: traceId, outcome: 'correct' }, 'other')).rejects.toThrow(
      'there is no trace',
    )
  })
})

it('finds a trace at once on the Node host, which keeps receipts in another thread', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-feedback-node-'))
  const file = join(folder, 'routing.toml')
  const plain = { gates: '["non-empty"]' }
  await writeFile(file, config(upstream.origin, plain).replace(/^gate = .*$/m, ''))
  upstream.always((response, seen, request) =>
    answer(200, JSON.stringify({ ...messagesAnswer(), id: `msg_${++calls}` }))(response, seen, request),
  )
  const node = await serveRouter({
    ROUTER_BIND: '127.0.0.1:0',
    ROUTER_DB: join(folder, 'router.db'),
    ROUTER_CONFIG: file,
    RUST_LOG: 'off',
  })
  const post = (path: string, body: object) =>
    fetch(node.origin + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  for (let i = 0; i < 20; i++) {
    const got = await post('/v1/messages', ASK)
    const { id } = (await got.json()) as { id: string }
    const traceId = got.headers.get('x-router-trace-id')!
    const told = await Promise.all([
      post('/v1/feedback', outcome(traceId, 'correct', 'a')),
      post('/v1/feedback', outcome(id, 'correct', 'b')),
    ])
    expect(told.map(({ status }) => status)).toEqual([202, 202])
    for (const one of told) expect(feedbackResult.parse(await one.json()).trace_id).toBe(traceId)
    expect((await post('/v1/feedback', outcome('nothing', 'correct'))).status).toBe(404)
  }
  await node.close()
  await rm(folder, { recursive: true, force: true })
})

describe('feedback that moves no threshold', () => {
  it('is stored for an observed call and counted in evals', async () => {
    await start()
    const { traceId } = await ask({ 'x-router-task': 'watch' })
    expect((await report(outcome(traceId, 'incorrect'))).serve_threshold).toBeNull()
    expect(await gauge('router_serve_threshold')).toBe(0.5)
    await sealed(traceId)
    const found = evals.parse(await (await get('/-/evals')).json())
    expect(found.outcomes).toMatchObject({ reported: 1, failed: 1 })
    expect(await gauge('router_realized_served_failure')).toBe(0)
  })

  it('counts an answer without a score as an outcome and teaches no threshold', async () => {
    await start({ gates: '[]' })
    expect((await report(outcome((await ask()).traceId, 'incorrect'))).serve_threshold).toBe(0.5)
    expect(await gauge('router_realized_served_failure')).toBe(1)
    expect(await gauge('router_route_calibration_n')).toBe(0)
  })

  it('leaves a threshold alone that the config fixed, and one that is off', async () => {
    await start({ route: 'serve_threshold = 0.7' })
    expect((await report(outcome((await ask()).traceId, 'incorrect'))).serve_threshold).toBe(0.7)
    expect([(await ask({}, { score: '0.7' })).rung, (await ask({}, { score: '0.69' })).rung]).toEqual(['0', '1'])
    await running.close()
    await start({ rest: 'calibration = { method = "off" }' })
    expect((await report(outcome((await ask()).traceId, 'incorrect'))).serve_threshold).toBeNull()
    expect((await ask({}, { score: '0.01' })).rung).toBe('0')
    const caps = capabilities.parse(await (await get('/v1/capabilities')).json())
    expect(caps.calibration).toMatchObject([{ state: 'off', threshold: null, n: 1 }])
  })

  it('asks for a store', async () => {
    const { createRouter } = await import('../../router/router.ts')
    const bare = createRouter({ config: config(upstream.origin), gates: GATES })
    const headers = { 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(outcome('x', 'correct')) }
    const got = await bare.fetch(new Request('http://router/v1/feedback', init))
    expect([got.status, ((await got.json()) as { error: { message: string } }).error.message]).toEqual([
      404,
      expect.stringContaining('without a store'),
    ])
    await bare.close()
    await start()
  })
})

describe('feedback of several tenants and configs', () => {
  const keys = parseKeys(`acme:${ACME},other:${OTHER},ops!:${OPS}`, sha256)
  const access = { keys, reach: 'network', insecure: false, metricsOpen: true } as const
  const as = (key: string) => ({ 'x-router-key': key })

  it("keeps another tenant's trace unknown, asks for a key, and lets an admin report on all", async () => {
    await start({}, { access })
    const { traceId } = await ask(as(ACME))
    const said = outcome(traceId, 'incorrect')
    expect((await running.post('/v1/feedback', said)).status).toBe(401)
    expect((await running.post('/v1/feedback', said, as(OTHER))).status).toBe(404)
    expect((await report(said, as(OPS))).status).toBe('recorded')
    expect((await report(said, as(ACME))).status).toBe('duplicate')
    const { rows } = await running.db.execute('select tenant_id from feedback')
    expect(rows.map(row => row.tenant_id)).toEqual(['acme'])
    const seen = async (key: string) =>
      capabilities.parse(await (await get('/v1/capabilities', as(key))).json()).calibration
    expect(await seen(ACME)).toMatchObject([{ tenant_id: 'acme', n: 1, threshold: expect.closeTo(0.518, 12) }])
    expect(await seen(OTHER)).toMatchObject([{ tenant_id: 'other', n: 0, threshold: 0.5 }])
    const found = evals.parse(await (await get('/-/evals', as(OPS))).json())
    expect(found.calibration.map(({ tenant_id }) => tenant_id)).toEqual(['acme'])
  })

  it('finds the route of a trace after the config was replaced, and starts anew for a changed ladder or gate', async () => {
    await start()
    const { traceId } = await ask()
    // Another order of routes and a new one: the route keeps its state. Then another ladder: it does not.
    const moved = config(upstream.origin).replace(
      'match = { task = "watch" }',
      'match = { task = "else" }\nprofile = "max"',
    )
    await running.router.reload(moved)
    expect((await report(outcome(traceId, 'incorrect'))).serve_threshold).toBeCloseTo(0.518, 12)
    expect(await gauge('router_route_calibration_n')).toBe(1)
    // A gate that is set otherwise under its id, and back.
    await running.router.reload(moved.replace('name = "graded"', 'name = "graded", on_abstain = "fail-closed"'))
    expect(await gauge('router_serve_threshold')).toBe(0.5)
    await running.router.reload(moved)
    expect(await gauge('router_serve_threshold')).toBeCloseTo(0.518, 12)
    await running.router.reload(config(upstream.origin).replace('["up/cheap", "up/best"]', '["up/cheap"]'))
    expect(await gauge('router_serve_threshold')).toBe(0.5)
    expect(await gauge('router_realized_served_failure')).toBe(1)
    const late = await report(outcome(traceId, 'correct'))
    expect(late.serve_threshold).toBeCloseTo(0.498, 12)
    expect(await gauge('router_serve_threshold')).toBe(0.5)
  })
})
