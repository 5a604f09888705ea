import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { nodeAccess } from '../../node-agent/tunnel/access.ts'
import { enrol, type Identity } from '../../node-agent/tunnel/identity.ts'
import { fromHex, utf8 } from '../../shared/sign/bytes.ts'
import { systemClock } from '../../shared/time/clock.ts'
import {
  type Assign,
  CompleteSchema,
  type ControlFrame,
  type NodeFrame,
  NodeFrameSchema,
} from '../../shared/tunnel/gateway.gen.ts'
import { completeMessage } from '../../shared/tunnel/protocol.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { ApiKeyCreated } from '../../shared/wire/runtime/auth.ts'
import type { NodeCreated } from '../../shared/wire/runtime/node.ts'
import type { Receipt, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { UsageItem } from '../../shared/wire/runtime/usage.ts'
import { expectWithin } from '../crowding.ts'
import { type Api, api } from './api.ts'
import { linkTo, until } from './node-fixture.ts'

type Body = NodeFrame['body']

let folder: string
let control: Api
let identity: Identity
let token: string
let seq = 0n
const sent: NodeFrame[] = []
let more: () => void = () => undefined
let over = false
/** What the node answers where it is asked for what only it has. */
let answerTo: (kind: string, id: string) => string = () => '[]'
const orders: Assign[] = []
let stream: Promise<void>

/** A node with a right credential, which says what it likes. */
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-hostile-'))
  control = await api({ url: join(folder, 'control.db'), masterKey: new Uint8Array(32).fill(7) })
  const { transport } = linkTo(() => control.runtime.nodes.gateway)
  const { enrolToken } = await control.json<NodeCreated>(201, 'POST', '/v1/nodes', { name: 'bad', pool: 'bad' })
  identity = await enrol(join(folder, 'bad.json'), enrolToken, 'bad', transport)
  token = await nodeAccess(identity, transport, systemClock.now).token()
  const labels = { 'waybill.pool': 'bad' }
  await control.json(201, 'POST', '/v1/agents', { name: 'worker', labels, manifest: { model: 'demo/echo' } })
  seq = 0n
  over = false
  answerTo = () => '[]'
  sent.length = 0
  orders.length = 0
  stream = listen()
})
afterEach(async () => {
  over = true
  more()
  await stream
  await control.close()
  await rm(folder, { recursive: true, force: true })
})

async function* outgoing(streamId = 's'): AsyncGenerator<NodeFrame> {
  const value = { nodeId: identity.nodeId, streamId, proto: 1, slots: 4 }
  yield create(NodeFrameSchema, { body: { case: 'hello', value } })
  while (!over) {
    const next = sent.shift()
    if (next) yield next
    else await new Promise<void>(resolve => (more = resolve))
  }
}

async function listen(): Promise<void> {
  const heard: AsyncIterable<ControlFrame> = control.runtime.nodes.gateway.connect(token, outgoing())
  for await (const { body } of heard) {
    if (body.case === 'assign') orders.push(body.value)
    if (body.case === 'readRequest') {
      const { requestId, kind, id } = body.value
      const value = { requestId, status: 200, body: utf8(answerTo(kind, id)), last: true }
      sent.push(create(NodeFrameSchema, { body: { case: 'readResponse', value } }))
      more()
    }
    if (over) return
  }
}

/** In one frame, so that they are handled together. */
function say(...bodies: object[]): void {
  const frames = bodies.map(body => create(NodeFrameSchema, { body: body as Body }))
  sent.push(create(NodeFrameSchema, { seq: ++seq, body: { case: 'bundle', value: { frames } } }))
  more()
}

const accept = ({ runId, epoch }: Assign, ok = true) => ({ case: 'accept', value: { runId, epoch, ok, reason: '' } })
const hash = new Uint8Array(32).fill(7)
const event = ({ runId, epoch }: Assign, eventSeq: bigint, used: object = {}) => ({
  case: 'event',
  value: {
    ...{ runId, epoch, eventSeq, kind: 'step_started', stepId: 'model-1', attempt: 1, hash },
    ...{ at: '2026-05-01T10:00:00.000Z', model: 'demo/echo', ...used },
  },
})
async function complete({ runId, epoch }: Assign, eventCount: bigint, used: object = {}) {
  const { rows } = await control.db.execute({
    sql: 'select input_hash from remote_runs where run_id = ?',
    args: [runId],
  })
  const value = create(CompleteSchema, {
    ...{ runId, epoch, status: 'succeeded', head: hash, eventCount, outputHash: hash, models: ['demo/echo'] },
    ...{ inputHash: fromHex(String(rows[0]?.input_hash)), finishedUnixMs: BigInt(Date.now()), ...used },
  })
  const { $typeName: _, nodeSignature: __, ...said } = value
  return { case: 'complete', value: { ...said, nodeSignature: await identity.signer.sign(completeMessage(said)) } }
}

/** A run that the node was told to execute. */
async function ordered(agentName = 'worker'): Promise<Assign> {
  const before = orders.length
  await control.json<Run>(201, 'POST', '/v1/runs', { agentName, input: { prompt: 'hello' } })
  await until(async () => orders.length > before, 'the run is offered')
  return orders.at(-1)!
}
const summary = (id: string) => control.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)
const metric = async (name: string) => {
  const page = await (await control.call('GET', '/metrics')).text()
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(page)?.[1] ?? 0)
}

const dropped = (why: string) => metric(`waybill_tunnel_frames_dropped_total\\{reason="${why}"\\}`)

it('ends a run once, however often its node says so in one breath', async () => {
  const order = await ordered()
  say(accept(order), event(order, 1n))
  await until(async () => (await summary(order.runId)).status === 'running', 'the run begins')
  const end = await complete(order, 1n, { costNanoUsd: 250_000_000n })
  say(end, end, end)
  await until(async () => (await summary(order.runId)).status === 'succeeded', 'the run ends')
  expect(await metric('waybill_remote_runs_total\\{status="succeeded"\\}')).toBe(1)
  expect(await metric('waybill_remote_cost_usd_total')).toBe(0.25)
  const { rows } = await control.db.execute('select sum(ended) as ended from usage_days')
  expect(rows[0]?.ended).toBe(1)
})

it('adds nothing to a run whose receipt is signed', async () => {
  const order = await ordered()
  say(accept(order), event(order, 1n), await complete(order, 1n))
  await until(async () => (await summary(order.runId)).status === 'succeeded', 'the run ends')
  say(event(order, 2n, { costNanoUsd: 5_000_000_000n }))
  await until(async () => (await dropped('run_ended')) === 1, 'the event is dropped')
  const receipt = await control.json<Receipt>(200, 'GET', `/v1/runs/${order.runId}/receipt`)
  const verified = await control.json<VerifyResult>(200, 'POST', '/v1/runs/receipts/verify', { receipt })
  expect(verified).toMatchObject({ valid: true, checks: { record: 'ok' } })
  expect((await control.json<UsageItem[]>(200, 'GET', '/v1/usage')).map(({ costUsd }) => costUsd)).toEqual([0])
})

it('gives a run that was refused to the next node as it was, and hears no more of it from the first one', async () => {
  const order = await ordered()
  say(accept(order, false), accept(order), event(order, 1n), accept(order, false))
  await until(async () => (await dropped('not_its_run')) === 3, 'the rest is dropped')
  const { rows } = await control.db.execute('select state, epoch, event_seq from remote_runs')
  expect(rows).toMatchObject([{ epoch: 2, event_seq: 0 }])
})

it('takes no event whose time is more than a time', async () => {
  const order = await ordered()
  say(accept(order), event(order, 1n, { at: '2026-05-01T10:00:00Z (or so)' }), event(order, 1n))
  await until(async () => (await summary(order.runId)).status === 'running', 'the run begins')
  expect(await dropped('bad_event')).toBe(1)
})

it('ignores a refusal of a run after its first event', async () => {
  const order = await ordered()
  say(event(order, 1n), accept(order, false))
  await until(async () => (await dropped('bad_refusal')) === 1, 'it is dropped')
  say(accept(order), await complete(order, 1n))
  await until(async () => (await summary(order.runId)).status === 'succeeded', 'the run ends')
})

it('adds up no more than numbers hold, and goes on with the other runs of a node that says so', async () => {
  const used = {
    tokensIn: BigInt(Number.MAX_SAFE_INTEGER),
    tokensOut: 1n,
    costNanoUsd: BigInt(Number.MAX_SAFE_INTEGER),
  }
  const [liar, other] = [await ordered(), await ordered()]
  say(accept(liar), event(liar, 1n, used), event(liar, 1n, used), accept(other))
  const much = { costNanoUsd: 2n ** 42n }
  for (let seq = 1n; seq <= 20n; seq++) say(event(liar, seq, much))
  say(event(other, 1n), await complete(other, 1n))
  await until(async () => (await summary(other.runId)).status === 'succeeded', 'the other run ends')
  say(await complete(liar, 8n, { costNanoUsd: 2n ** 46n }))
  await until(async () => (await summary(liar.runId)).status === 'failed', 'the run of the liar fails')
  const usd = 2 ** 45 / 1e9
  expect(await summary(liar.runId)).toMatchObject({ costUsd: usd, error: { code: 'internal' } })
  expect(await control.json<UsageItem[]>(200, 'GET', '/v1/usage')).toMatchObject([{ costUsd: usd }])
})

it('makes no run under the number of another one, which stays with its tenant, and handles what comes after', async () => {
  const labels = { 'waybill.pool': 'bad' }
  const manifest = { model: 'demo/echo', subAgents: [{ name: 'worker', description: 'does the work' }] }
  await control.json(201, 'POST', '/v1/agents', { name: 'caller', labels, manifest })
  const { id: tenant } = await control.json<{ id: string }>(201, 'POST', '/v1/tenants', { name: 'victim' })
  const scopes = ['agents:write', 'runs:execute', 'runs:read']
  const made = { name: 'one', scopes }
  const { rawKey } = await control.json<ApiKeyCreated>(201, 'POST', `/v1/tenants/${tenant}/api-keys`, made)
  const asked = async <T>(method: string, path: string, body?: unknown) =>
    (await control.call(method, path, body, { authorization: `Bearer ${rawKey}` })).json() as T
  await asked('POST', '/v1/agents', { name: 'near', manifest: { model: 'demo/echo', tools: ['wait_signal'] } })
  const input = { prompt: '/call wait_signal {"name":"go"}' }
  const victim = await asked<Run>('POST', '/v1/runs', { agentName: 'near', input })
  const now = () => asked<Run>('GET', `/v1/runs/${victim.id}`)
  await until(async () => (await now()).status === 'running', 'the run is here')
  const { nodeId } = await now()

  const order = await ordered('caller')
  say(accept(order), event(order, 1n))
  const ask = { runId: order.runId, epoch: order.epoch, childId: victim.id, agentName: 'worker', inputHash: hash }
  say({ case: 'childAsk', value: { ...ask, inputSealed: hash, inputLength: 3n } })
  say(await complete(order, 1n))
  await until(async () => (await summary(order.runId)).status === 'succeeded', 'the run ends')
  // As if the number had been given to this node.
  const stolen = { ...order, runId: victim.id, epoch: 2n }
  say(accept(stolen), event(stolen, 1n))
  await until(async () => (await dropped('not_its_run')) === 2, 'what it says of the run is dropped')
  expect(orders.map(({ runId }) => runId)).toEqual([order.runId])
  expect(await now()).toMatchObject({ agentName: 'near', status: 'running', nodeId })
  await control.call('POST', `/v1/runs/${victim.id}/signals/go`, { value: 1 }, { authorization: `Bearer ${rawKey}` })
  await until(async () => (await now()).status === 'succeeded', 'the run goes on')
})

it('is heard as one process: a first one that comes back after a second one was there is refused', async () => {
  const { gateway } = control.runtime.nodes
  const welcomed = async (streamId: string) => {
    const heard = gateway.connect(token, outgoing(streamId))[Symbol.asyncIterator]()
    expect((await heard.next()).value?.body.case).toBe('welcome')
    return heard
  }
  const refused = stream.catch(error => error)
  const second = await welcomed('t')
  expect(await refused).toMatchObject({ code: 'replaced' })
  stream = Promise.resolve()
  // The process that came last may dial as often as it likes.
  const again = await welcomed('t')
  await expect(welcomed('s')).rejects.toMatchObject({
    code: 'replaced',
    message: expect.stringContaining('another process has come with the same node.json'),
  })
  over = true
  await Promise.all([second, again].map(one => one.return?.(undefined)))
})

const APPROVAL = '01900000-0000-7000-8000-000000000001'
const HOSTILE: Record<string, (id: string) => unknown> = {
  'no list': () => ({}),
  nothing: () => null,
  'a list of nothing': () => [null],
  'texts for members': id => [{ id, input: 'x', output: 'y', errorMessage: 5, prompt: 7, action: 'z', comment: {} }],
  'lists for members': id => [{ id, input: [], output: [], prompt: [], action: [], comment: [] }],
  'an address that is none': id => [{ id, input: {}, prompt: 'p', action: { name: 'x', arguments: 1, to: {} } }],
  'depth without end': id => `[{"id":"${id}","input":{"x":${'['.repeat(50_000)}${']'.repeat(50_000)}}}]`,
}

/** A run on the node that waits for a decision, and what is listed beside it. */
async function waitingRun(): Promise<Assign> {
  await control.json(201, 'POST', '/v1/agents', { name: 'here', manifest: { model: 'demo/echo' } })
  await control.json(201, 'POST', '/v1/runs', { agentName: 'here', input: { prompt: 'mine' } })
  const order = await ordered()
  const expiresUnix = BigInt(Math.round(Date.now() / 1000) + 3600)
  const asked = { runId: order.runId, stepId: 'approval-1-1', approvalId: APPROVAL, reason: 'approval_required' }
  say(accept(order), event(order, 1n), { case: 'approval', value: { ...asked, expiresUnix } })
  const known = async () => (await control.json<Approval[]>(200, 'GET', '/v1/approvals')).length > 0
  await until(known, 'the question is known')
  return order
}

it.each(Object.keys(HOSTILE))('hides with what it answers nothing but its own runs: %s', async name => {
  const { runId } = await waitingRun()
  answerTo = (kind, id) => {
    const made = HOSTILE[name]!(id)
    const text = typeof made === 'string' ? made : JSON.stringify(made)
    return kind === 'events' ? `${'0'.repeat(64)} ${text}\n` : text
  }
  const runs = await control.json<Run[]>(200, 'GET', '/v1/runs')
  expect(runs.map(({ agentName, input }) => [agentName, input])).toEqual([
    ['worker', name === 'an address that is none' ? {} : undefined],
    ['here', { prompt: 'mine' }],
  ])
  const [asked] = await control.json<Approval[]>(200, 'GET', '/v1/approvals')
  expect([asked!.prompt, asked!.action, asked!.comment]).toEqual(['', undefined, undefined])
  for (const path of ['', '/events?live=false', '/journal', '/steps', '/steps/model-1/request']) {
    expect((await control.call('GET', `/v1/runs/${runId}${path}`)).status, path).not.toBe(500)
  }
  expect((await control.call('GET', `/v1/approvals/${APPROVAL}`)).status).not.toBe(500)
})

it('has no more questions of a run than any run may have, and their list keeps no other caller waiting', async () => {
  const { runId } = await waitingRun()
  const [most, bundle] = [10_000, 1000]
  for (let asked = 0; asked < most + 2 * bundle; asked += bundle) {
    const asks = Array.from({ length: bundle }, (_, n) => ({
      ...{ runId, stepId: `approval-${asked + n}-2`, approvalId: crypto.randomUUID(), reason: 'question' },
      expiresUnix: 9_999_999_999n,
    }))
    say(...asks.map(value => ({ case: 'approval', value })))
  }
  await until(async () => (await dropped('bad_approval')) > 2 * bundle, 'those beyond are dropped', 60_000)
  let longest = 0
  let last = performance.now()
  const watch = setInterval(() => {
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
  }, 5)
  const asked = await control.json<Approval[]>(200, 'GET', `/v1/runs/${runId}/approvals`)
  clearInterval(watch)
  expect(asked.length).toBe(most)
  expectWithin(longest, 500)
}, 90_000)

it('speaks for no question of another node', async () => {
  await waitingRun()
  // As if another node had asked it; this one says something of each question that there is.
  const OTHER = APPROVAL.replace(/1$/, '2')
  answerTo = () => JSON.stringify([APPROVAL, OTHER].map(id => ({ id, prompt: `said of ${id}` })))
  await control.db.execute({
    sql: `insert into approvals (id, tenant_id, run_id, agent_name, step_id, round, status, reason, prompt, created_ms, expires_ms)
      select ?, tenant_id, id, agent_name, 'approval-1-1', 1, 'pending', 'approval_required', '', 1, 2
      from runs where agent_name = 'here'`,
    args: [OTHER],
  })
  const asked = await control.json<Approval[]>(200, 'GET', '/v1/approvals')
  expect(new Map(asked.map(({ id, prompt }) => [id, prompt]))).toEqual(
    new Map([
      [APPROVAL, `said of ${APPROVAL}`],
      [OTHER, ''],
    ]),
  )
})

it.each([
  ['brackets', () => `[${'[],'.repeat(20_000_000)}1]`],
  ['names that are read slowly', () => `[${'{"\\n":1},'.repeat(5_000_000)}1]`],
  ['lines', () => '\n'.repeat(60_000_000)],
])('keeps no other caller waiting with an answer full of %s', async (_, text) => {
  const { runId } = await waitingRun()
  const made = text()
  answerTo = () => made
  for (const path of ['/v1/runs', `/v1/runs/${runId}/journal`]) {
    const before = performance.now()
    const answer = await control.call('GET', path)
    await answer.text()
    expect(answer.status).not.toBe(500)
    // Most of it is the copies that this test makes of the text.
    expectWithin(performance.now() - before, 2500, path)
  }
})
