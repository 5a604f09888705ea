import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { nodeAccess } from '../../node-agent/tunnel/access.ts'
import { enrol, type Identity } from '../../node-agent/tunnel/identity.ts'
import { listenForNodes } from '../../runtime/host/tunnel.ts'
import { systemClock } from '../../shared/time/clock.ts'
import {
  type ControlFrame,
  ControlFrameSchema,
  type NodeFrame,
  NodeFrameSchema,
} from '../../shared/tunnel/gateway.gen.ts'
import { TunnelRefusal } from '../../shared/tunnel/protocol.ts'
import type { NodeCreated } from '../../shared/wire/runtime/node.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { type Api, api } from './api.ts'
import { linkTo, type NodeFixture, nodeFixture, until } from './node-fixture.ts'

type Body = NonNullable<MessageInitShape<typeof NodeFrameSchema>['body']>

let folder: string
let control: Api
let good: NodeFixture
let bad: Identity
let token: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-fuzz-'))
  control = await api({ url: join(folder, 'control.db'), embeddedNode: false })
  good = await nodeFixture(control, folder, { name: 'good', pool: 'good' })
  const { transport } = linkTo(() => control.runtime.nodes.gateway)
  const { enrolToken } = await control.json<NodeCreated>(201, 'POST', '/v1/nodes', { name: 'bad', pool: 'bad' })
  bad = await enrol(join(folder, 'bad.json'), enrolToken, 'bad', transport)
  token = await nodeAccess(bad, transport, systemClock.now).token()
  const labels = { 'waybill.pool': 'good' }
  await control.json(201, 'POST', '/v1/agents', { name: 'worker', labels, manifest: { tools: ['wait_signal'] } })
})
afterEach(async () => {
  await good.close()
  await control.close()
  await rm(folder, { recursive: true, force: true })
})

const start = async (prompt: string) =>
  (await control.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt } })).id
const summary = (id: string) => control.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)
async function waiting(): Promise<string> {
  const id = await start('/call wait_signal {"name":"go"}')
  await until(async () => {
    const { rows } = await control.db.execute({ sql: 'select event_seq from remote_runs where run_id = ?', args: [id] })
    return Number(rows[0]?.[0]) === 3
  }, 'the run waits')
  return id
}

/** What a far end makes of the frames of a node that says what it likes: each as it comes off a wire. */
async function talk(frames: readonly NodeFrame[]): Promise<string> {
  async function* outgoing() {
    yield create(NodeFrameSchema, { body: { case: 'hello', value: { nodeId: bad.nodeId, streamId: 's', proto: 1 } } })
    for (const frame of frames) yield fromBinary(NodeFrameSchema, toBinary(NodeFrameSchema, frame))
  }
  try {
    for await (const _ of control.runtime.nodes.gateway.connect(token, outgoing()));
    return 'ended'
  } catch (error) {
    return error instanceof TunnelRefusal ? error.code : `not refused: ${error}`
  }
}

const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constant('\0'), fc.constant('x'.repeat(100_000)))
const count = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
const signed = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const bytes = fc.uint8Array({ maxLength: 64 })
/** Bodies of frames about this run, or about any. */
const bodies = (runId: string): fc.Arbitrary<Body> => {
  const run = fc.oneof(fc.constant(runId), text)
  const epoch = fc.oneof(fc.constant(1n), count)
  const spent = { tokensIn: count, tokensOut: count, costNanoUsd: signed }
  return fc.oneof(
    fc.record({
      case: fc.constant('accept' as const),
      value: fc.record({ runId: run, epoch, ok: fc.boolean(), reason: text }),
    }),
    fc.record({
      case: fc.constant('event' as const),
      value: fc.record({
        runId: run,
        epoch,
        eventSeq: count,
        kind: fc.oneof(text, fc.constant('step_started')),
        stepId: text,
        attempt: fc.nat(),
        at: fc.oneof(text, fc.constant('2026-05-01T10:00:00Z')),
        hash: bytes,
        model: text,
        ...spent,
      }),
    }),
    fc.record({
      case: fc.constant('complete' as const),
      value: fc.record({
        runId: run,
        epoch,
        status: fc.constantFrom('succeeded', 'failed', 'x'),
        errorCode: text,
        head: bytes,
        eventCount: count,
        inputHash: bytes,
        outputHash: bytes,
        nodeSignature: bytes,
        errorStep: text,
        ...spent,
        models: fc.array(text),
        isolation: text,
        finishedUnixMs: signed,
      }),
    }),
    fc.record({
      case: fc.constant('approval' as const),
      value: fc.record({ runId: run, stepId: text, approvalId: text, reason: text, expiresUnix: signed }),
    }),
    fc.record({
      case: fc.constant('secretAck' as const),
      value: fc.record({ ref: text, ok: fc.boolean(), error: text }),
    }),
    fc.record({
      case: fc.constant('readResponse' as const),
      value: fc.record({ requestId: text, status: fc.nat(), body: bytes, last: fc.boolean() }),
    }),
    fc.record({
      case: fc.constant('heartbeat' as const),
      value: fc.record({ activeRuns: fc.nat(), cpu: fc.double() }),
    }),
    fc.record({
      case: fc.constant('hello' as const),
      value: fc.record({ nodeId: text, streamId: text, proto: fc.nat() }),
    }),
    fc.record({
      case: fc.constant('sessionDelta' as const),
      value: fc.record({ sessionId: text, turnId: run, seq: fc.nat(), delta: bytes }),
    }),
    fc.record({ case: fc.constant('takeover' as const), value: fc.record({ runId: run, epoch }) }),
    fc.record({
      case: fc.constant('parked' as const),
      value: fc.record({ runId: run, epoch, reason: fc.oneof(text, fc.constantFrom('', 'poisoned')) }),
    }),
    fc.record({
      case: fc.constant('childAsk' as const),
      value: fc.record({
        runId: run,
        epoch,
        childId: fc.oneof(text, fc.uuid()),
        agentName: text,
        inputSealed: bytes,
        inputHash: fc.uint8Array({ minLength: 32, maxLength: 32 }),
        inputLength: count,
      }),
    }),
    fc.record({ case: fc.constant('budgetAsk' as const), value: fc.record({ requestId: text, runId: run }) }),
    fc.record({ case: fc.constant('ackOnly' as const), value: fc.constant({}) }),
  )
}

/** Some of them in bundles, which may hold anything. */
const bodiesAndBundles = (runId: string): fc.Arbitrary<Body> =>
  fc.oneof(
    { weight: 4, arbitrary: bodies(runId) },
    {
      weight: 1,
      arbitrary: fc.record({
        case: fc.constant('bundle' as const),
        value: fc.record({ frames: fc.array(fc.record({ body: bodies(runId), seq: count }), { maxLength: 4 }) }),
      }),
    },
  )

it('no frames of a node move a run of another one, whatever they say', async () => {
  const id = await waiting()
  const before = await control.db.execute({ sql: 'select * from remote_runs where run_id = ?', args: [id] })
  let seq = 0n
  const outcomes = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ body: bodiesAndBundles(id), skip: fc.nat({ max: 20 }) }), { maxLength: 12 }),
      async said => {
        const frames = said.map(({ body, skip }) => {
          // Now and then a number that is missing, was there before, or is none.
          const next = skip === 0 ? 0n : skip === 1 ? seq + 5n : skip === 2 ? seq : ++seq
          return create(NodeFrameSchema, { seq: next, ack: 0n, body })
        })
        const outcome = await talk(frames)
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
        expect(['ended', 'bad_frame', 'out_of_order', 'unauthenticated']).toContain(outcome)
        // What a broken stream did not take is numbered anew by the next life of a node.
        if (outcome !== 'ended') seq = await seen()
      },
    ),
    { numRuns: 150 },
  )
  expect([...outcomes.keys()].sort()).toEqual(['bad_frame', 'ended', 'out_of_order'])
  // What was said is acted on when the loop has had a turn.
  await until(async () => {
    const metrics = await (await control.call('GET', '/metrics')).text()
    return /waybill_tunnel_frames_dropped_total\{reason="not_its_run"\} [1-9]/.test(metrics)
  }, 'frames were dropped')
  const after = await control.db.execute({ sql: 'select * from remote_runs where run_id = ?', args: [id] })
  expect(after.rows).toEqual(before.rows)
  await control.json(204, 'POST', `/v1/runs/${id}/signals/go`, { value: 1 })
  await until(async () => isTerminal((await summary(id)).status), 'the run goes on')
  expect(await summary(id)).toMatchObject({ status: 'succeeded', nodeId: good.identity.nodeId })
})

/** How far the control plane has followed the stream of the bad node. */
async function seen(): Promise<bigint> {
  async function* hello() {
    yield create(NodeFrameSchema, { body: { case: 'hello', value: { nodeId: bad.nodeId, streamId: 's', proto: 1 } } })
  }
  for await (const { body } of control.runtime.nodes.gateway.connect(token, hello())) {
    if (body.case === 'welcome') return body.value.lastSeenSeq
  }
  throw new Error('nobody said welcome')
}

it('no frames of a control plane stop a node: it drops the stream, dials again, and its runs go on', async () => {
  const id = await waiting()
  const box = fc.uint8Array({ maxLength: 100 })
  const orders = fc.oneof(
    fc.record({
      case: fc.constant('assign' as const),
      value: fc.record({
        runId: fc.uuid(),
        epoch: count,
        agentVersionId: text,
        manifestSealed: box,
        inputSealed: box,
        createdUnixMs: fc.bigInt({ min: 0n, max: 2n ** 40n }),
        forkedRun: text,
        forkedStep: text,
        textsSealed: box,
      }),
    }),
    fc.record({
      case: fc.constant('cancel' as const),
      value: fc.record({ runId: fc.uuid(), reason: text, remove: fc.boolean() }),
    }),
    fc.record({
      case: fc.constant('approval' as const),
      value: fc.record({ runId: text, approvalId: text, decision: text, detailSealed: box }),
    }),
    fc.record({
      case: fc.constant('signal' as const),
      value: fc.record({ runId: text, name: text, valueSealed: box }),
    }),
    fc.record({
      case: fc.constant('secretPut' as const),
      value: fc.record({ ref: text, sealed: box, remove: fc.boolean() }),
    }),
    fc.record({
      case: fc.constant('readRequest' as const),
      value: fc.record({
        requestId: text,
        kind: fc.constantFrom('data', 'events', 'texts', 'pool-key', 'messages', 'turns', 'x'),
        id: text,
        box,
      }),
    }),
    fc.record({
      case: fc.constant('childRefused' as const),
      value: fc.record({ runId: text, childId: text, code: text, message: text }),
    }),
    fc.record({
      case: fc.constant('sessionStop' as const),
      value: fc.record({ sessionId: text, remove: fc.boolean() }),
    }),
    fc.record({ case: fc.constant('sessionOpen' as const), value: fc.record({ sessionId: text }) }),
  )
  const gen = fc.sample(fc.tuple(orders, fc.nat({ max: 9 })), { numRuns: 150, seed: 7 })
  let next = 0
  good.link.meddle.toNode = frame => {
    const out: ControlFrame[] = [frame]
    if (frame.body.case === 'welcome') return out
    for (const [body, number] of gen.slice(next, next + 10)) {
      // In the place of a number that the real ones have, so that some are acted on.
      const seq = number === 0 ? 0n : frame.seq
      out.unshift(
        fromBinary(ControlFrameSchema, toBinary(ControlFrameSchema, create(ControlFrameSchema, { seq, body }))),
      )
    }
    next += 10
    return out
  }
  await until(
    async () => {
      if (next < gen.length) await control.call('GET', `/v1/runs/${id}`)
      return next >= gen.length
    },
    'everything was said',
    60_000,
  )
  good.link.meddle.toNode = frame => [frame]
  await until(async () => (await control.call('GET', `/v1/runs/${id}`)).ok, 'the node answers again')
  await control.json(204, 'POST', `/v1/runs/${id}/signals/go`, { value: 1 })
  await until(async () => isTerminal((await summary(id)).status), 'the run goes on')
  expect(await summary(id)).toMatchObject({ status: 'succeeded' })
}, 90_000)

it('bytes that are no gRPC do nothing to the nodes that speak it', async () => {
  const gateway = control.runtime.nodes.gateway
  const tunnel = await listenForNodes({ gateway, bind: { host: '127.0.0.1', port: 0 }, insecure: false })
  const port = Number(new URL(tunnel.at.endpoint).port)
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  try {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2000 }), fc.boolean(), async (noise, polite) => {
        const socket = connect(port, '127.0.0.1')
        socket.on('error', () => undefined)
        const closed = new Promise(resolve => socket.once('close', resolve))
        socket.end(Buffer.concat([polite ? preface : Buffer.alloc(0), noise]))
        socket.resume()
        await closed
      }),
      { numRuns: 60 },
    )
    const id = await start('after the noise')
    await until(async () => isTerminal((await summary(id)).status), 'runs go on')
    expect(await summary(id)).toMatchObject({ status: 'succeeded' })
  } finally {
    await tunnel.close()
  }
})
