import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signer } from '../../shared/sign/ed25519.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import { capabilities } from '../../shared/wire/router/capabilities.ts'
import { checkpointList, routerKeys } from '../../shared/wire/router/checkpoint.ts'
import { evals } from '../../shared/wire/router/evals.ts'
import { explanation } from '../../shared/wire/router/explain.ts'
import { feedbackList } from '../../shared/wire/router/feedback.ts'
import { savings } from '../../shared/wire/router/savings.ts'
import { traceDetail, traceList } from '../../shared/wire/router/traces.ts'
import { eventually } from '../../tests/eventually.ts'
import { type TestRouter, testRouter } from '../../tests/router/routers.ts'
import { messagesAnswer } from '../../tests/upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../../tests/upstream/scripted.ts'
import { parseKeys } from '../auth/keys.ts'

const ACME = 'acme-secret-of-24-characters'
const OTHER = 'other-secret-of-24-characters'
const OPS = 'ops-secret-of-24-characters-'
const CANARY = 'sk-canary-0123456789'

const config = (origin: string, gates = '["non-empty"]') => `version = 1
price = [
  { model = "small/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "large/best", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [
  { id = "small", dialect = "messages", base_url = "${origin}/small", auth = "none" },
  { id = "large", dialect = "messages", base_url = "${origin}/large", auth = "none" },
]
[[route]]
match = {}
mode = "enforce"
ladder = ["small/cheap", "large/best"]
gates = ${gates}
`

const ASK = { model: 'auto', max_tokens: 100, messages: [{ role: 'user', content: 'canary prompt words' }] }

describe('the audit over HTTP', () => {
  let upstream: ScriptedUpstream
  let running: TestRouter
  let source: string
  const ids: string[] = []

  const get = (path: string, key = ACME) =>
    running.router.fetch(new Request(`http://router${path}`, { headers: { 'x-router-key': key } }))
  const json = async (path: string, key = ACME): Promise<unknown> => (await get(path, key)).json()
  const reload = (key: string) =>
    running.router.fetch(new Request('http://router/-/reload', { method: 'POST', headers: { 'x-router-key': key } }))

  async function ask(key: string, texts: string[]): Promise<string> {
    upstream.queue(...texts.map(text => answer(200, JSON.stringify(messagesAnswer(text)), { 'request-id': 'req_up' })))
    const got = await running.post('/v1/messages', ASK, { 'x-router-key': key, authorization: `Bearer ${CANARY}` })
    await got.text()
    expect(got.status).toBe(200)
    return got.headers.get('x-router-trace-id') ?? ''
  }

  /** Until the writer has sealed it; each look is a real request. */
  const sealed = (id: string, key: string) =>
    eventually(async () => expect(traceDetail.parse(await json(`/-/traces/${id}`, key)).pending).toBe(false))

  beforeAll(async () => {
    upstream = await scriptedUpstream()
    source = config(upstream.origin)
    running = await testRouter({
      config: source,
      readConfig: async () => source,
      access: {
        keys: parseKeys(`acme:${ACME},other:${OTHER},ops!:${OPS}`, sha256),
        reach: 'network',
        insecure: false,
        metricsOpen: false,
      },
      receiptStorage: { durable: false, signer: await signer(new Uint8Array(32).fill(9)) },
    })
    ids.push(await ask(ACME, ['good']), await ask(ACME, ['', 'better']), await ask(OTHER, ['theirs']))
    await sealed(ids[0]!, ACME)
    await sealed(ids[1]!, ACME)
    await sealed(ids[2]!, OTHER)
  })
  afterAll(async () => {
    await running?.close()
    await upstream?.close()
  })

  it('lists newest first, pages by cursor and filters', async () => {
    const all = traceList.parse(await json('/-/traces'))
    expect([all.traces.map(({ trace_id }) => trace_id), all.next]).toEqual([[ids[1], ids[0]], null])
    const first = traceList.parse(await json('/-/traces?limit=1'))
    expect(first.traces.map(({ trace_id }) => trace_id)).toEqual([ids[1]])
    const second = traceList.parse(await json(`/-/traces?limit=1&before=${first.next}`))
    expect([second.traces.map(({ trace_id }) => trace_id), second.next]).toEqual([[ids[0]], null])
    const count = async (query: string) => traceList.parse(await json(`/-/traces?${query}`)).traces.length
    expect(await count('mode=observe')).toBe(0)
    expect(await count('mode=enforce&route=0&served_from=attempt')).toBe(2)
    expect(await count('route=1')).toBe(0)
    expect(await count(`session=${all.traces[0]?.session_id}`)).toBe(2)
    expect(await count('since=2020-01-01&until=2020-01-02')).toBe(0)
  })

  it.each(['limit=0', 'limit=501', 'limit=x', 'mode=fast', 'since=yesterday', 'before=abc', 'served_from=me'])(
    'refuses %s and names it',
    async query => {
      const got = await get(`/-/traces?${query}`)
      const body = (await got.json()) as { error: { type: string; message: string } }
      expect([got.status, body.error.type]).toEqual([400, 'bad_request'])
      expect(body.error.message).toContain(query.split('=')[0])
    },
  )

  it('finds a trace by its own id, the response id and the request id', async () => {
    for (const id of [ids[1], 'msg_01', 'req_up']) {
      const { trace, feedback } = traceDetail.parse(await json(`/-/traces/${id}`))
      expect([trace.trace_id, trace.tenant_id, feedback]).toEqual([ids[1], 'acme', []])
    }
  })

  it("answers 404 for another tenant's id, in every form and place", async () => {
    for (const id of [ids[2], 'no-such-id']) {
      for (const path of [`/-/traces/${id}`, `/-/traces/${id}/explain`]) {
        const got = await get(path)
        expect([got.status, await got.json()]).toMatchObject([404, { error: { type: 'not_found' } }])
      }
    }
    expect(traceDetail.parse(await json(`/-/traces/${ids[2]}`, OPS)).trace.tenant_id).toBe('other')
  })

  it('explains the climb with its numbers', async () => {
    const { summary, steps } = explanation.parse(await json(`/-/traces/${ids[1]}/explain`))
    expect(summary).toMatch(
      /^Rung 1 \(large\/best\) was served after 2 attempts for 0\.1056 USD, 0\.0066 USD more than the top rung\.$/,
    )
    expect(steps.map(({ step }) => step)).toEqual(['route', 'start', 'attempt 1', 'attempt 2', 'serve', 'cost'])
    expect(steps[2]).toMatchObject({
      decision: 'rung 0 (small/cheap): fail',
      because: expect.stringContaining('non-empty fail'),
    })
    expect(steps[3]?.because).toMatch(/^the attempt before failed its gates/)
  })

  it("sums one tenant's savings, and all for an admin", async () => {
    const own = savings.parse(await json('/-/savings?group=model'))
    expect(own.requests).toBe(2)
    expect(own.spent_usd).toBeCloseTo(0.0066 + 0.1056, 9)
    expect(own.groups.map(({ key, requests }) => [key, requests])).toEqual([
      ['large/best', 1],
      ['small/cheap', 1],
    ])
    expect(savings.parse(await json('/-/savings', OPS)).requests).toBeGreaterThan(2)
    expect((await get('/-/savings?group=colour')).status).toBe(400)
  })

  it('counts gates in evals', async () => {
    const found = evals.parse(await json('/-/evals'))
    expect(found).toMatchObject({
      requests: 2,
      escalations: 1,
      served_by_rung: { 0: 1, 1: 1 },
      moves: [
        { from: null, to: 0, requests: 2 },
        { from: 0, to: 1, requests: 1 },
      ],
      calibration: [{ tenant_id: 'acme', route_ix: 0, state: 'not_certified', method: 'aci', threshold: 0.5, n: 0 }],
    })
    expect(found.gates).toMatchObject([{ gate_id: 'non-empty', pass: 2, fail: 1, abstain: 0, disabled: false }])
  })

  it('publishes its keys to everyone and its checkpoints to their tenant', async () => {
    const open = await running.router.fetch(new Request('http://router/.well-known/router-receipts'))
    const { keys } = routerKeys.parse(await open.json())
    expect(keys).toHaveLength(1)
    const { checkpoints } = checkpointList.parse(await json('/-/checkpoints?limit=500'))
    expect(checkpoints.every(({ tenant_id, key_id }) => tenant_id === 'acme' && key_id === keys[0]?.key_id)).toBe(true)
    expect((await get('/-/checkpoints?after=x')).status).toBe(400)
  })

  it('lists what was reported in the order of its chains, to the tenant whose it is', async () => {
    const post = (request_id: string, outcome: string, key = ACME) =>
      running.post('/v1/feedback', { request_id, outcome }, { 'x-router-key': key })
    for (const outcome of ['correct', 'incorrect', 'correct']) expect((await post(ids[1]!, outcome)).status).toBe(202)
    const list = async (query: string, key = ACME) => feedbackList.parse(await json(`/-/feedback/records${query}`, key))
    const first = await list('?limit=2')
    const rest = await list(`?limit=2&after=${encodeURIComponent(first.next ?? '')}`)
    const all = [...first.feedback, ...rest.feedback]
    expect(all.map(({ tenant_id, record }) => [tenant_id, record?.seq, record?.verdict])).toEqual([
      ['acme', 0, 'pass'],
      ['acme', 1, 'fail'],
      ['acme', 2, 'pass'],
    ])
    expect(rest.next).toBeNull()
    expect((await list('', OTHER)).feedback).toEqual([])
    expect((await list('?limit=1', OPS)).next).toBe('0.acme')
    expect((await list('?limit=500&after=0.acme', OPS)).feedback).toHaveLength(2)
    expect((await get('/-/feedback/records?after=x')).status).toBe(400)
    expect((await get('/-/feedback/records', 'no key of this router')).status).toBe(401)
  })

  it('describes itself without a secret or a full address', async () => {
    const text = await (await get('/v1/capabilities')).text()
    const known = capabilities.parse(JSON.parse(text))
    expect(known).toMatchObject({
      service: 'router',
      auth: { required: true },
      receipts: { durability: 'best_effort', checkpoint_every: 256 },
      routes: [{ ix: 0, mode: 'enforce', gates: ['non-empty'] }],
    })
    expect(known.providers.find(({ id }) => id === 'small')).toMatchObject({ breaker: 'closed', auth: 'none' })
    for (const secret of [ACME, OPS, CANARY, `${upstream.origin}/small`]) expect(text).not.toContain(secret)
  })

  it('says on the metrics page what the receipts say', async () => {
    const page = await (await get('/metrics', OPS)).text()
    const value = (series: string) =>
      Number(
        page
          .split('\n')
          .find(line => line.startsWith(`${series} `))
          ?.split(' ')[1],
      )
    expect(value('router_requests_total{api="messages",mode="enforce",status_class="2xx"}')).toBe(3)
    expect(value('router_served_rung_total{model="large/best",rung="1"}')).toBe(1)
    expect(value('router_attempts_total{cause="escalation",provider="large",result="pass",rung="1"}')).toBe(1)
    expect(value('router_escalations_total{route="0"}')).toBe(1)
    expect(value('router_gate_verdicts_total{gate_id="non-empty",verdict="fail"}')).toBe(1)
    expect(value('router_cost_usd_total{tenant="acme"}')).toBeCloseTo(0.0066 + 0.1056, 9)
    expect(value('router_savings_usd{tenant="acme"}')).toBeCloseTo(
      savings.parse(await json('/-/savings')).savings_usd,
      9,
    )
    expect(value('router_tokens_total{class="output",model="large/best",provider="large"}')).toBe(50)
    expect(value('router_request_duration_seconds_count{api="messages",mode="enforce"}')).toBe(3)
    expect(value('router_breaker_state{provider="small"}')).toBe(0)
    expect(value('router_gate_disabled{gate_id="non-empty"}')).toBe(0)
    for (const secret of [ACME, OTHER, OPS, CANARY, 'canary prompt']) expect(page).not.toContain(secret)
  })

  it('reloads for an admin only: a bad config keeps the old one, a good one serves the next request', async () => {
    expect((await reload(ACME)).status).toBe(403)
    const before = await (await reload(OPS)).json()
    expect(before).toEqual({ config_hash: expect.any(String), changed: false, restart_required: [] })
    source = source.replace('gates =', 'gatez =')
    const bad = await reload(OPS)
    expect([bad.status, await bad.json()]).toMatchObject([
      400,
      { error: { message: expect.stringMatching(/gatez.*gates/) } },
    ])
    await ask(ACME, ['still served'])
    source = `store = { queue = 100 }\n${config(upstream.origin, '[]')}`
    const good = await reload(OPS)
    expect([good.status, await good.json()]).toMatchObject([200, { changed: true, restart_required: ['store.queue'] }])
    source = source.replace('output_per_mtok = 75', 'output_per_mtok = 70')
    expect(await (await reload(OPS)).json()).toMatchObject({ changed: true })
    const id = await ask(ACME, [''])
    expect(traceDetail.parse(await json(`/-/traces/${id}`)).trace.attempts).toMatchObject([
      { gate: 'skipped', verdict: 'pass' },
    ])
    const page = await (await get('/metrics', OPS)).text()
    expect(page).toContain('router_config_reloads_total{result="error"} 1\n')
    expect(page).toContain('router_config_reloads_total{result="ok"} 3\n')
  })
})

describe('a record that waits for the writer', () => {
  it('is found by each of its ids, without a place in the chain, and is sealed later', async () => {
    const upstream = await scriptedUpstream()
    // The writer would gather for a minute; closing the router ends the wait.
    const running = await testRouter({ config: `store = { flush_ms = 60000 }\n${config(upstream.origin)}` })
    upstream.queue(answer(200, JSON.stringify(messagesAnswer('soon')), { 'request-id': 'req_up' }))
    const got = await running.post('/v1/messages', ASK, { 'x-request-id': 'mine' })
    const id = got.headers.get('x-router-trace-id')
    for (const one of [id, 'msg_01', 'req_up', 'mine']) {
      const answered = await running.router.fetch(new Request(`http://router/-/traces/${one}`))
      const { trace, pending, feedback } = traceDetail.parse(await answered.json())
      expect([trace.trace_id, pending, feedback, 'seq' in trace]).toEqual([id, true, [], false])
    }
    expect((await running.receipts()).map(({ trace_id }) => trace_id)).toEqual([id])
    await running.close()
    await upstream.close()
  })
})

describe('a router without a store', () => {
  it('says that it keeps nothing', async () => {
    const { createRouter } = await import('../router.ts')
    const router = createRouter()
    const got = await router.fetch(new Request('http://router/-/traces'))
    expect([got.status, await got.json()]).toMatchObject([
      404,
      { error: { message: expect.stringContaining('without a store') } },
    ])
    expect((await router.fetch(new Request('http://router/v1/capabilities'))).status).toBe(200)
    await router.close()
  })
})
