import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Schema, Validator } from '@cfworker/json-schema'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { silentLog } from '../../shared/log/log.ts'
import { signer } from '../../shared/sign/ed25519.ts'
import type { Db } from '../../shared/sql/db.ts'
import { evals } from '../../shared/wire/router/evals.ts'
import { feedbackRecord } from '../../shared/wire/router/feedback.ts'
import { type McpToolName, mcpTools } from '../../shared/wire/router/mcp.ts'
import { eventually } from '../../tests/eventually.ts'
import { messagesAnswer } from '../../tests/upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../../tests/upstream/scripted.ts'
import type { StoredCalibration } from '../calibrate/calibration.ts'
import { routingConfig } from '../cli/routing-config.ts'
import { describeTools } from '../mcp/describe-tools.ts'
import { RESOURCE_TEMPLATES, RESOURCES } from '../mcp/resources.ts'
import { createRouter, type Router } from '../router.ts'
import { auditSession } from './audit-session.ts'

const CONFIG = (origin: string) => `version = 1
price = [
  { model = "up/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "up/best", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [{ id = "up", dialect = "messages", base_url = "${origin}", auth = "none" }]
gate = [{ id = "graded", kind = "function", name = "graded" }]
[calibration]
gamma = 0.05
[[route]]
match = { task = "watch" }
mode = "observe"
[[route]]
match = {}
mode = "enforce"
ladder = ["up/cheap", "up/best"]
gates = ["graded"]
`

type Session = Awaited<ReturnType<typeof auditSession>>

interface Place {
  router: Router
  db: Db
  session: Session
  get(path: string): Promise<Response>
  ask(): Promise<string>
  report(body: object): Promise<Response>
  close(): Promise<void>
}

let folder: string
let upstream: ScriptedUpstream
const published = new Map(describeTools().map(tool => [tool.name, tool]))

/** A router with its store in a file, and an audit session on the same file. */
async function place(name: string): Promise<Place> {
  const file = join(folder, `${name}.db`)
  const db = await openDb(file, { synchronous: 'normal' })
  const router = createRouter({
    db,
    config: CONFIG(upstream.origin),
    // Sessions of the same question have the same id in each store.
    promptSalt: 'one salt for both',
    receiptStorage: { durable: false, signer: await signer(new Uint8Array(32).fill(7)) },
    gates: { functions: { graded: ({ candidate }) => ({ verdict: 'pass', score: Number(candidate) }) } },
  })
  await router.ready()
  const vars = {}
  const session = await auditSession({
    vars,
    address: file,
    tenant: 'default',
    log: silentLog(),
    config: async () => (await routingConfig(vars)).config,
  })
  const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
  const post = (path: string, body: object) =>
    router.fetch(new Request(`http://router${path}`, { ...init, body: JSON.stringify(body) }))
  const get = async (path: string) => router.fetch(new Request(`http://router${path}`))
  return {
    router,
    db,
    session,
    get,
    async ask() {
      const got = await post('/v1/messages', {
        model: 'auto',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'hi' }],
      })
      await got.text()
      const id = got.headers.get('x-router-trace-id')!
      await eventually(async () =>
        expect(await (await get(`/-/traces/${id}`)).json()).toMatchObject({ pending: false }),
      )
      return id
    },
    report: body => post('/v1/feedback', body),
    async close() {
      await session.close()
      await router.close().finally(() => db.close())
    },
  }
}

/** Calls a tool that must answer; what it says must be what the tool promises, in zod and in the published JSON Schema. */
async function answered<N extends McpToolName>(session: Session, name: N, input?: object) {
  const result = await session.call(name, input)
  expect(result.isError, JSON.stringify(result.content)).toBeUndefined()
  expect(JSON.parse(result.content[0]!.text)).toEqual(result.structuredContent)
  const promised = new Validator(published.get(name)!.outputSchema as Schema, '7').validate(result.structuredContent)
  expect(promised.errors).toEqual([])
  return mcpTools[name].output.parse(result.structuredContent)
}

async function refused(session: Session, name: string, input?: unknown): Promise<string> {
  const result = await session.call(name, input)
  expect([result.isError, result.structuredContent]).toEqual([true, undefined])
  return result.content[0]!.text
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-audit-'))
  upstream = await scriptedUpstream()
  upstream.always((response, seen, request) => {
    const { model } = JSON.parse(String(seen.body)) as { model: string }
    return answer(200, JSON.stringify(messagesAnswer('1', model)))(response, seen, request)
  })
})
afterAll(async () => {
  await upstream?.close()
  await rm(folder, { recursive: true, force: true })
})

describe('an audit session', () => {
  let here: Place
  let ids: string[]

  beforeAll(async () => {
    here = await place('reads')
    ids = [await here.ask(), await here.ask(), await here.ask()]
    await here.report({ request_id: ids[0]!, outcome: 'incorrect' })
  })
  afterAll(() => here?.close())

  it('lists the newest decisions first, and only those that are asked for', async () => {
    const { traces } = (await answered(here.session, 'list_traces')) as { traces: { trace_id: string }[] }
    expect(traces.map(({ trace_id }) => trace_id)).toEqual([...ids].reverse())
    const few = await answered(here.session, 'list_traces', { limit: 1, mode: 'enforce', route: 1 })
    expect(few).toMatchObject({ traces: [{ trace_id: ids[2], served_model: 'up/cheap', attempts: 1, status: 200 }] })
    expect(await answered(here.session, 'list_traces', { mode: 'observe' })).toEqual({ traces: [] })
    expect(await answered(here.session, 'list_traces', { since: '2100-01-01' })).toEqual({ traces: [] })
  })

  it('says of a decision, of savings and of evals what HTTP says', async () => {
    const get = async (path: string) => (await (await here.get(path)).json()) as Record<string, unknown>
    const { pending: _, ...detail } = await get(`/-/traces/${ids[0]}`)
    expect(await answered(here.session, 'get_trace', { trace_id: ids[0] })).toEqual(detail)
    expect(await answered(here.session, 'explain_route', { trace_id: ids[1] })).toEqual(
      await get(`/-/traces/${ids[1]}/explain`),
    )
    for (const group of ['route', 'model', 'day']) {
      expect(await answered(here.session, 'get_savings', { group })).toEqual(await get(`/-/savings?group=${group}`))
    }
    const { gates, ...known } = evals.parse(await get('/-/evals'))
    expect(await answered(here.session, 'get_evals')).toEqual({
      ...known,
      gates: gates.map(({ disabled: _, ...gate }) => gate),
    })
    expect(known.calibration).toMatchObject([{ route_ix: 1, n: 1 }])
  })

  it('lists the modes', async () => {
    const { modes } = (await answered(here.session, 'list_modes')) as { modes: { name: string }[] }
    expect(modes.map(({ name }) => name)).toEqual(['cost', 'balanced', 'quality', 'latency', 'max'])
  })

  it('rehearses a start from its receipts, and makes up no figure where none started like that', async () => {
    const started = await answered(here.session, 'rehearse_policy', { start_rung: 0 })
    expect(started).toMatchObject({ n: expect.any(Number), coverage: 1 })
    const never = await answered(here.session, 'rehearse_policy', { start_rung: 1 })
    expect(never).toMatchObject({ coverage: 0, ips: { value: null, ci: null } })
  })

  it.each([
    ['list_traces', { limit: 0 }, 'limit: expected an integer from 1 to 200'],
    ['list_traces', { tenant: 'other' }, 'unknown key: tenant'],
    ['get_savings', { since: 'soon' }, 'since: expected a day such as 2026-01-02 or a time with a zone'],
    ['get_trace', {}, 'trace_id is required'],
    ['get_trace', { trace_id: 'nothing' }, 'there is no trace with the id nothing'],
    ['explain_route', { trace_id: 'nothing' }, 'there is no trace with the id nothing'],
    ['rehearse_policy', {}, 'body: send policy_toml or start_rung, one of them'],
    ['verify_receipts', { anchor: 'x' }, 'anchor: expected a checkpoint, as JSON on one line'],
    ['verify_receipts', { anchor: '{}\n{}' }, 'anchor, line 1 is no checkpoint: v is required'],
    ['submit_feedback', { request_id: 'x', verdict: 'pass' }, 'outcome is required'],
    ['submit_feedback', { request_id: 'nothing', outcome: 'correct' }, 'there is no trace with the id nothing'],
    ['submit_feedback', { request_id: 'a\0b', outcome: 'correct' }, 'ref holds a NUL character'],
    ['toString', {}, 'there is no tool with the name toString'],
  ])('refuses %s with %j in words', async (name, input, message) => {
    expect(await refused(here.session, name, input)).toBe(message)
  })

  it('knows nothing of other tenants', async () => {
    const session = await auditSession({
      vars: {},
      address: join(folder, 'reads.db'),
      tenant: 'other',
      log: silentLog(),
      config: async () => (await routingConfig({})).config,
    })
    expect(await answered(session, 'list_traces')).toEqual({ traces: [] })
    expect(await answered(session, 'get_savings')).toMatchObject({ requests: 0 })
    for (const name of ['get_trace', 'explain_route'])
      expect(await refused(session, name, { trace_id: ids[0] })).toContain('no trace')
    expect(await refused(session, 'submit_feedback', { request_id: ids[0], outcome: 'correct' })).toContain('no trace')
    expect(await answered(session, 'verify_receipts')).toEqual({ valid: true, records: 0, tenants: [] })
    await expect(session.read(`router://traces/${ids[0]}`)).rejects.toThrow('no resource')
    await session.close()
  })

  it('offers traces, capabilities and the config as resources, without a key or an address', async () => {
    const json = async (uri: string) =>
      JSON.parse((await here.session.read(uri)).contents[0]!.text) as Record<string, unknown>
    expect(await json(`router://traces/${ids[0]}`)).toMatchObject({
      trace: { trace_id: ids[0] },
      feedback: [{ verdict: 'fail' }],
    })
    expect(await json('router://capabilities')).toMatchObject({ service: 'router', calibration: [{ route_ix: 1 }] })
    expect(await json('router://config')).toMatchObject({ config_version: 1, store: { retentionDays: 0 } })
    expect([...RESOURCES, ...RESOURCE_TEMPLATES].map(({ name }) => name)).toEqual([
      'capabilities',
      'config',
      'latest checkpoint',
      'trace',
    ])
    for (const uri of ['router://traces/none', 'router://traces/%', 'router://nothing', 'file:///etc/passwd']) {
      await expect(here.session.read(uri)).rejects.toThrow(`there is no resource at ${uri}`)
    }
  })
})

describe('submit_feedback', () => {
  it('leaves the very rows and thresholds that the same reports leave over HTTP', async () => {
    const [http, mcp] = [await place('http'), await place('mcp')]
    // Both shapes, a repetition, a change, and a word that says nothing.
    const script = (ids: readonly string[]) => [
      { request_id: ids[0], outcome: 'correct' },
      { request_id: ids[0], outcome: 'correct' },
      { trace_id: ids[1], gate_id: 'ci', verdict: 'fail', reporter: 'ci', score: 0.5 },
      { request_id: ids[0], outcome: 'incorrect', reporter: 'client' },
      { request_id: ids[2], outcome: 'unknown' },
      { trace_id: ids[2], gate_id: 'ci', verdict: 'pass', reporter: 'ci' },
    ]
    const told = async (on: Place, submit: (report: object) => Promise<unknown>) => {
      const ids = [await on.ask(), await on.ask(), await on.ask()]
      const named = (text: string) => ids.reduce((all, id, i) => all.replaceAll(id, `trace ${i}`), text)
      const said = []
      for (const report of script(ids)) said.push(await submit(report))
      const { rows } = await on.db.execute('select body from feedback order by seq')
      const records = rows.map(row => feedbackRecord.parse(JSON.parse(String(row.body))))
      const entries = await on.db.execute('select tenant_id, route_fp, version, state from calibration')
      const outcomes = await on.db.execute('select * from outcomes order by ix')
      const withoutTimes = (row: object) => ({ ...row, answered_ms: undefined, session: undefined })
      const withoutCursor = (row: object) => {
        const { mature, ...state } = JSON.parse(String('state' in row && row.state)) as StoredCalibration
        return { ...row, state: { ...state, mature: { ...mature, upTo: undefined } } }
      }
      const own = records.map(({ feedback_id }) => feedback_id)
      // Ids and times are of the moment; everything that is made of them is left out, everything else must be equal.
      const plain = own.reduce(
        (all, id, i) => all.replaceAll(id, `feedback ${i}`),
        named(
          JSON.stringify({
            said,
            records: records.map(({ ts: _, hash: __, prev_hash: ___, ...rest }) => rest),
            outcomes: outcomes.rows.map(withoutTimes),
            entries: entries.rows.map(withoutCursor),
          }),
        ),
      )
      const seen = (await (await on.get('/-/evals')).json()) as { outcomes: unknown; calibration: unknown }
      return { plain: JSON.parse(plain) as unknown, outcomes: seen.outcomes, calibration: seen.calibration }
    }
    const overHttp = await told(http, async report => {
      const got = await http.report(report)
      expect(got.status).toBe(202)
      return got.json()
    })
    const overMcp = await told(mcp, report => answered(mcp.session, 'submit_feedback', report))
    expect(overMcp.plain).toEqual(overHttp.plain)
    // The router that runs beside the session sees the new threshold when it looks again, at most a second later.
    await eventually(async () => {
      const { calibration } = evals.parse(await (await mcp.get('/-/evals')).json())
      expect(calibration).toEqual(overHttp.calibration)
    })
    expect(overMcp.outcomes).toEqual(overHttp.outcomes)
    expect(overHttp.outcomes).toMatchObject({ reported: 3, failed: 2 })
    await Promise.all([http.close(), mcp.close()])
  })
})

describe('verify_receipts', () => {
  it('misses records that were cut off with their checkpoints when it is given an older checkpoint', async () => {
    const here = await place('anchored')
    for (let i = 0; i < 3; i++) await here.ask()
    // A router that stops signs what it leaves.
    await here.router.close()
    const anchor = (await here.session.read('router://checkpoints/latest')).contents[0]!.text
    expect(await answered(here.session, 'verify_receipts', { anchor })).toMatchObject({
      tenants: [{ broken_at: null, last_checkpoint: 2, unanchored_tail: 0 }],
    })
    await here.db.execute('delete from traces where seq = 2')
    await here.db.execute('delete from checkpoints')
    expect(await answered(here.session, 'verify_receipts')).toMatchObject({ valid: true, records: 2 })
    expect(await answered(here.session, 'verify_receipts', { anchor })).toMatchObject({
      tenants: [{ broken_at: 2, reason: 'tail_cut' }],
    })
    await here.session.close()
    here.db.close()
  })

  it('re-derives the chain, whole or its newest part, and finds what was changed', async () => {
    const here = await place('verify')
    for (let i = 0; i < 6; i++) await here.ask()
    await expect(here.session.read('router://checkpoints/latest')).rejects.toThrow('no checkpoint yet')
    const whole = await answered(here.session, 'verify_receipts')
    expect(whole).toMatchObject({ valid: true, records: 6, tenants: [{ tenant_id: 'default', broken_at: null }] })
    expect(await answered(here.session, 'verify_receipts', { limit: 2 })).toMatchObject({ valid: true, records: 2 })
    expect(await answered(here.session, 'verify_receipts', { limit: 6 })).toMatchObject({ valid: true, records: 6 })
    expect(await answered(here.session, 'verify_receipts', { limit: 99 })).toMatchObject({ valid: true, records: 6 })
    await here.db.execute(`update traces set body = replace(body, '"status":200', '"status":201') where seq = 3`)
    const broken = { valid: false, tenants: [{ broken_at: 3 }] }
    expect(await answered(here.session, 'verify_receipts')).toMatchObject(broken)
    expect(await answered(here.session, 'verify_receipts', { limit: 4 })).toMatchObject({ tenants: [{ broken_at: 1 }] })
    expect(await answered(here.session, 'verify_receipts', { limit: 2 })).toMatchObject({ valid: true, records: 2 })
    await here.db.execute(`update traces set body = 'no json' where seq = 3`)
    expect(await answered(here.session, 'verify_receipts', { limit: 2 })).toMatchObject(broken)
    await here.close()
  })
})
