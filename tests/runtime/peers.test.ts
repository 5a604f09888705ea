import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FoundModel, ModelCall } from '../../runtime/execution/models/model.ts'
import { createLog } from '../../shared/log/log.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { PoolCredential } from '../../shared/wire/runtime/node.ts'
import type { Receipt, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { Session, TurnReply } from '../../shared/wire/runtime/session.ts'
import { expectWithin } from '../crowding.ts'
import { type NodeFixture, nodeFixture, until } from './node-fixture.ts'
import { siblings } from './siblings.ts'

const TIMES = { heartbeatMs: 600_000, lostMs: 3_600_000, maxStreamMs: 3_600_000, readMs: 2000 }
const labels = { 'waybill.pool': 'default' }

let folder: string
let group: Awaited<ReturnType<typeof siblings>>
let one: NodeFixture
/** The control plane that the node dials. */
let dialled: number
/** Everything that one control plane sends to another. */
let sent: { request: Request; from: number }[]
let lines: string
/** Before a commit of one of them. */
let hold: ((from: number, sql: string) => Promise<void>) | undefined

const [A, B] = [0, 1]
const at = (number: number) => group[number]!

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-planes-'))
  sent = []
  lines = ''
  dialled = A
  // Nothing comes by a heartbeat here: what is to be quick has to be told.
  const log = createLog({
    filter: { all: 'debug', byTarget: new Map() },
    write(line) {
      lines += line
    },
  })
  hold = undefined
  group = await siblings(
    2,
    { url: join(folder, 'control.db'), tunnel: TIMES, log },
    {
      sent: (request, from) => sent.push({ request, from }),
      before: async (from, sql) => hold?.(from, sql),
    },
  )
  one = await nodeFixture(at(A), folder, { gateway: () => at(dialled).runtime.nodes.gateway })
  await online(one)
  await at(B).json(201, 'POST', '/v1/agents', {
    name: 'worker',
    labels,
    manifest: { systemPrompt: 'canary-system', tools: ['wait', 'wait_signal'], approvals: { tools: ['wait'] } },
  })
})
afterEach(async () => {
  await one.close()
  await Promise.all(group.map(peer => peer.close()))
  await rm(folder, { recursive: true, force: true })
})

const online = (node: NodeFixture, peer = A) =>
  until(async () => {
    const { status } = await at(peer).json<{ status: string }>(200, 'GET', `/v1/nodes/${node.identity.nodeId}`)
    return status === 'online'
  }, 'the node is online')
const start = (prompt: string, peer = B) =>
  at(peer).json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt } })
const summary = (id: string) => at(B).json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)
const ended = (id: string) => until(async () => isTerminal((await summary(id)).status), `run ${id} ends`)

describe('a node that has dialled one of two control planes', () => {
  it('takes a run of the other one at once, and shows it there and nowhere in between', async () => {
    const began = performance.now()
    const { id } = await start('canary-input')
    await ended(id)
    expectWithin(performance.now() - began, 4000)
    const run = await at(B).json<Run>(200, 'GET', `/v1/runs/${id}`)
    expect(run).toMatchObject({ status: 'succeeded', nodeId: one.identity.nodeId, input: { prompt: 'canary-input' } })
    expect(await at(A).json<Run>(200, 'GET', `/v1/runs/${id}`)).toEqual(run)
    const [listed] = await at(B).json<Run[]>(200, 'GET', '/v1/runs')
    expect(listed).toEqual(run)
    const agent = await at(B).json<{ manifest: { systemPrompt: string } }>(200, 'GET', '/v1/agents/worker')
    expect(agent.manifest.systemPrompt).toBe('canary-system')

    const passed = await Promise.all(sent.map(async ({ request }) => Buffer.from(await request.arrayBuffer())))
    expect(passed.length).toBeGreaterThan(0)
    const names = (await readdir(folder)).filter(name => name.startsWith('control.db'))
    const files = (await Promise.all(names.map(name => readFile(join(folder, name), 'latin1')))).join('')
    for (const text of [...passed.map(bytes => bytes.toString('latin1')), lines, files]) {
      expect(text).not.toMatch(/canary-(?:input|system)/)
      expect(text.includes(id) && text !== files && text !== lines).toBe(false)
    }
  })

  it('holds a session that is opened and talked with at the other one', async () => {
    const { id } = await at(B).json<Session>(201, 'POST', '/v1/sessions', { agentName: 'worker' })
    const stream = await at(B).events(`/v1/sessions/${id}/events`)
    const first = await at(B).json<TurnReply>(200, 'POST', `/v1/sessions/${id}/messages`, { content: 'one' })
    expect(first).toMatchObject({ status: 'completed', text: expect.stringContaining('one') })
    const second = await at(A).json<TurnReply>(200, 'POST', `/v1/sessions/${id}/messages`, { content: 'two' })
    expect(second).toMatchObject({ status: 'completed', text: expect.stringContaining('two') })
    const ends: unknown[] = []
    while (ends.length < 2) {
      const event = await stream.next()
      if (event?.event === 'message_completed') ends.push(event.data.text)
    }
    expect(ends).toEqual([first.text, second.text])
    await stream.stop()
    await at(B).json(200, 'POST', `/v1/sessions/${id}/stop`, {})
    expect((await at(B).call('DELETE', `/v1/sessions/${id}`)).status).toBe(204)
  })

  it('is given credentials, drained, joined by another node and removed through the other one', async () => {
    const nodeId = one.identity.nodeId
    const secret = { secret: { name: 'TOKEN', value: 'canary-secret' } }
    await at(B).json(200, 'PUT', '/v1/pools/default/credentials', secret)
    await until(async () => {
      const [kept] = await at(B).json<PoolCredential[]>(200, 'GET', '/v1/pools/default/credentials')
      return kept?.nodes[0]?.at !== undefined
    }, 'the node has the secret')
    const told: boolean[] = []
    one.link.meddle.toNode = frame => {
      if (frame.body.case === 'drain') told.push(frame.body.value.on)
      return [frame]
    }
    // Its key comes from the node at the other control plane.
    const two = await nodeFixture(at(B), folder, { name: 'two' })
    await online(two, B)
    await at(B).json(200, 'POST', `/v1/nodes/${nodeId}/drain`, {})
    await until(async () => told.at(-1) === true, 'the node knows that it is drained')
    await at(B).json(200, 'POST', `/v1/nodes/${nodeId}/undrain`, {})
    await until(async () => told.at(-1) === false, 'the node knows that it is not')
    let proofs = 0
    const { refresh } = one.link.transport
    one.link.transport.refresh = request => {
      proofs++
      return refresh(request)
    }
    expect((await at(B).call('DELETE', `/v1/nodes/${nodeId}?force=true`)).status).toBe(204)
    await until(async () => proofs > 0, 'its stream is ended')
    await two.close()
  })

  it('is waited for by both of them: a run that it will take is not given up at the other one', async () => {
    await at(A).json(200, 'POST', `/v1/nodes/${one.identity.nodeId}/drain`, {})
    const { id } = await start('hello')
    await at(B).db.execute({ sql: 'update remote_runs set dispatch_by_ms = 1 where run_id = ?', args: [id] })
    await at(B).runtime.scheduled()
    const { rows } = await at(B).db.execute('select state, dispatch_by_ms > 1 from remote_runs')
    expect(rows.map(row => [row[0], row[1]])).toEqual([['queued', 1]])
    await at(B).json(200, 'POST', `/v1/nodes/${one.identity.nodeId}/undrain`, {})
    await until(async () => {
      await at(A).runtime.scheduled()
      return isTerminal((await summary(id)).status)
    }, 'it ends')
    expect((await summary(id)).status).toBe('succeeded')
  })

  it('is offline in words when its control plane is gone, and there again when it has dialled the other one', async () => {
    const { id } = await start('/call wait_signal {"name":"go"}')
    await until(async () => {
      const { eventCount } = await at(B).json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`)
      return eventCount === 3
    }, 'it waits')
    const { id: session } = await at(B).json<Session>(201, 'POST', '/v1/sessions', { agentName: 'worker' })
    one.link.cut()
    await at(A).close()
    const refused = await at(B).call('GET', `/v1/runs/${id}`)
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'node_offline' }])
    const unsaid = await at(B).call('POST', `/v1/sessions/${session}/messages`, { content: 'hello' })
    expect([unsaid.status, await unsaid.json()]).toMatchObject([503, { code: 'node_offline' }])
    expect((await at(B).call('POST', '/v1/sessions', { agentName: 'worker' })).status).toBe(503)

    await at(B).json(204, 'POST', `/v1/runs/${id}/signals/go`, { value: 'canary-value' })
    dialled = B
    one.link.mend()
    await ended(id)
    const passed = sent.length
    const run = await at(B).json<Run>(200, 'GET', `/v1/runs/${id}`)
    expect(run.output).toMatchObject({ result: expect.stringContaining('canary-value') })
    const reply = await at(B).json<TurnReply>(200, 'POST', `/v1/sessions/${session}/messages`, { content: 'back' })
    expect(reply.status).toBe('completed')
    expect(sent.length).toBe(passed)
  })
})

describe('what two control planes decide at the same moment', () => {
  /** The next such commit of that one waits until it is let go. */
  function held(peer: number, what: string) {
    const [came, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    hold = async (from, sql) => {
      if (from !== peer || !sql.includes(what)) return
      hold = undefined
      came.resolve()
      await go.promise
    }
    return { came: came.promise, go: go.resolve }
  }
  const cancel = (id: string) => at(B).json<Run>(200, 'POST', `/v1/runs/${id}/cancel`, {})
  /** What stands about it everywhere. */
  async function sealed(id: string) {
    const receipt = await until(async () => {
      const answer = await at(B).call('GET', `/v1/runs/${id}/receipt`)
      return answer.ok && ((await answer.json()) as Receipt)
    }, 'there is a receipt')
    const journal = await at(B).json<JournalExport>(200, 'GET', `/v1/runs/${id}/journal`)
    const verdict = await at(B).json<VerifyResult>(200, 'POST', '/v1/runs/receipts/verify', { receipt, journal })
    const there = await one.db.execute({ sql: 'select status from runs where id = ?', args: [id] })
    return {
      run: (await summary(id)).status,
      receipt: receipt.payload.status,
      node: there.rows[0]?.status,
      valid: verdict.valid,
      checks: verdict.checks,
      events: journal.eventCount,
    }
  }

  it('is one: a run is cancelled at one of them while the other one gives it to its node', async () => {
    one.link.cut()
    const { id } = await start('/call wait {"seconds":0}')
    const ending = held(B, 'reservations where run_id')
    const cancelled = cancel(id)
    await ending.came
    one.link.mend()
    await until(
      async () => (await at(A).json<unknown[]>(200, 'GET', `/v1/runs/${id}/approvals`)).length > 0,
      'it waits',
    )
    ending.go()
    expect((await cancelled).status).toBe('cancelled')
    expect(await sealed(id)).toMatchObject({
      run: 'cancelled',
      receipt: 'cancelled',
      node: 'cancelled',
      valid: true,
      checks: { signature: 'ok', journal: 'ok', record: 'ok' },
    })
  })

  it('is one: a run is cancelled at one of them while the other one writes down its end', async () => {
    const writing = held(A, 'insert into "receipts"')
    const { id } = await start('hello')
    await writing.came
    expect((await cancel(id)).status).toBe('cancelled')
    writing.go()
    expect(await sealed(id)).toMatchObject({
      run: 'cancelled',
      receipt: 'cancelled',
      node: 'succeeded',
      valid: true,
      events: 2,
      checks: { signature: 'ok', journal: 'ok', record: 'ok' },
    })
  })
})

describe('a turn that a node at the other control plane speaks', () => {
  let two: NodeFixture
  let session: string
  const idle = () => undefined
  /** Lets the model say its next piece, or end. */
  let next: (piece: string | undefined) => void
  const model: FoundModel = {
    id: 'test/talker',
    prices: async () => () => 0,
    async ask(_, { onDelta }: ModelCall) {
      let text = ''
      for (;;) {
        const piece = await new Promise<string | undefined>(resolve => {
          next = resolve
        })
        if (piece === undefined) break
        text += piece
        onDelta?.(piece)
      }
      const spent = { tokensIn: 1, tokensOut: 1, costNano: 0 }
      return { text, toolCalls: [], stop: 'end', provider: 'test', model: 'test/talker', spent }
    },
  }
  beforeEach(async () => {
    two = await nodeFixture(at(A), folder, {
      name: 'two',
      pool: 'talk',
      gateway: () => at(dialled).runtime.nodes.gateway,
      models: { find: async () => model },
    })
    await online(two)
    const talker = { name: 'talker', labels: { 'waybill.pool': 'talk' }, manifest: {} }
    await at(B).json(201, 'POST', '/v1/agents', talker)
    session = (await at(B).json<Session>(201, 'POST', '/v1/sessions', { agentName: 'talker' })).id
    next = idle
  })
  afterEach(() => two.close())

  const listen = (peer: number, headers = {}) => at(peer).events(`/v1/sessions/${session}/events`, headers)
  const send = (content: string) => at(B).json<TurnReply>(200, 'POST', `/v1/sessions/${session}/messages`, { content })
  async function say(piece: string | undefined) {
    await until(async () => next !== idle, 'the model is asked')
    const tell = next
    next = idle
    tell(piece)
  }
  async function heard(stream: Awaited<ReturnType<typeof listen>>) {
    const { id, event, data = {} } = (await stream.next()) ?? {}
    return [id, event, data.delta ?? data.text, data.seq]
  }

  it('is heard there as it is said, under the same ids, by whoever listens or comes back', async () => {
    const [near, remote] = [await listen(A), await listen(B)]
    for (const pieces of [['canary-', 'one ', 'two'], ['three']]) {
      const reply = send('speak')
      for (const [seq, piece] of pieces.entries()) {
        await say(piece)
        // The next one is said when this one was heard at both.
        const there = await heard(near)
        expect(there).toEqual([expect.any(String), 'message_delta', piece, seq + 1])
        expect(await heard(remote)).toEqual(there)
      }
      const late = pieces.length > 1 ? await listen(B) : undefined
      if (late) {
        for (const piece of pieces) expect((await heard(late))[2]).toBe(piece)
      }
      await say(undefined)
      const end = await heard(near)
      expect(end).toEqual([expect.any(String), 'message_completed', pieces.join(''), undefined])
      expect(await heard(remote)).toEqual(end)
      if (late) {
        expect(await heard(late)).toEqual(end)
        await late.stop()
      }
      expect((await reply).text).toBe(pieces.join(''))
    }
    await Promise.all([near.stop(), remote.stop()])
    const passed = await Promise.all(sent.map(async ({ request }) => Buffer.from(await request.arrayBuffer())))
    for (const text of [...passed.map(bytes => bytes.toString('latin1')), lines]) expect(text).not.toContain('canary-')
  })

  it('has its end there also when its control plane is gone in the middle of it', async () => {
    const remote = await listen(B)
    const reply = send('speak')
    await say('one ')
    expect((await heard(remote)).slice(1)).toEqual(['message_delta', 'one ', 1])
    two.link.cut()
    await Promise.all([at(A).close(), one.close()])
    dialled = B
    await say('two')
    await say(undefined)
    two.link.mend()
    const told: unknown[] = []
    for (let event = await heard(remote); ; event = await heard(remote)) {
      told.push(event[1])
      if (event[1] !== 'message_delta') {
        expect(event.slice(1, 3)).toEqual(['message_completed', 'one two'])
        break
      }
    }
    expect((await reply).text).toBe('one two')
    await remote.stop()
  })
})

describe('what one control plane asks another', () => {
  const path = '/internal/peer'
  const post = (body: BodyInit, headers: Record<string, string> = {}) =>
    at(A).runtime.fetch(new Request(`${at(A).origin}${path}`, { method: 'POST', body, headers }))

  /** A request as it went from one to the other. */
  async function real(): Promise<Uint8Array<ArrayBuffer>> {
    const { id } = await start('hello')
    await ended(id)
    sent = []
    await at(B).json(200, 'GET', `/v1/runs/${id}`)
    const [{ request } = { request: undefined }] = sent
    expect(new URL(request!.url).pathname).toBe(path)
    return new Uint8Array(await request!.arrayBuffer())
  }

  it('is refused when it is unsigned, changed, repeated or sent to another one', async () => {
    const bytes = await real()
    const cases: Record<string, BodyInit> = {
      empty: '',
      'a key of the API': '{"ask":"read"}',
      noise: crypto.getRandomValues(new Uint8Array(500)),
      repeated: bytes,
      cut: bytes.slice(0, -1),
      longer: new Uint8Array([...bytes, 0]),
      ...Object.fromEntries(
        [0, 31, 32, bytes.length - 1].map(place => [`byte ${place}`, bytes.map((b, i) => (i === place ? b ^ 1 : b))]),
      ),
    }
    for (const [name, body] of Object.entries(cases)) {
      const answer = await post(body, { authorization: `Bearer wb_live_${'k'.repeat(43)}` })
      expect([name, answer.status, ((await answer.json()) as { code: string }).code]).toEqual([
        name,
        401,
        'unauthorized',
      ])
    }
    const elsewhere = await at(B).runtime.fetch(new Request(`${at(B).origin}${path}`, { method: 'POST', body: bytes }))
    expect(elsewhere.status).toBe(401)
    expect((await at(A).call('GET', path)).status).toBe(404)
    expect(JSON.stringify(await (await at(A).call('GET', '/openapi.json')).json())).not.toContain('internal/peer')
  })
})
