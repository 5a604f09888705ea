import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FoundModel, ModelCall } from '../../runtime/execution/models/model.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Session, TurnReply } from '../../shared/wire/runtime/session.ts'
import { type Api, api } from './api.ts'
import { filesOf, type NodeFixture, nodeFixture, TIMES, until } from './node-fixture.ts'

let folder: string
let control: Api
let one: NodeFixture
/** What the model of the node says to the next question: pieces, with a pause before each that is a promise. */
let says: (call: ModelCall, question: string) => Promise<string>
const asked: string[][] = []
const labels = { 'waybill.pool': 'default' }

const model: FoundModel = {
  id: 'test/talker',
  prices: async () => (tokensIn, tokensOut) => tokensIn + tokensOut,
  async ask({ system, messages }, call) {
    asked.push([system ?? '', ...messages.flatMap(message => ('text' in message ? [message.text] : []))])
    const last = messages.findLast(({ role }) => role === 'user')
    const text = await says(call, last?.role === 'user' ? last.text : '')
    const spent = { tokensIn: 10, tokensOut: 5, costNano: 15_000 }
    return { text, toolCalls: [], stop: 'end', provider: 'test', model: 'test/talker', spent }
  },
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-node-sessions-'))
  control = await api({ url: join(folder, 'control.db'), masterKey: new Uint8Array(32).fill(7), tunnel: TIMES })
  one = await nodeFixture(control, folder, { models: { find: async () => model } })
  await until(async () => {
    const node = await control.json<{ status: string }>(200, 'GET', `/v1/nodes/${one.identity.nodeId}`)
    return node.status === 'online'
  }, 'the node is online')
  asked.length = 0
  says = async ({ onDelta }, question) => {
    const text = `canary-answer to ${question}`
    for (const piece of text.split(/(?<= )/)) onDelta?.(piece)
    return text
  }
  await control.json(201, 'POST', '/v1/agents', { name: 'talker', labels, manifest: { systemPrompt: 'canary-system' } })
})
afterEach(async () => {
  await one.close()
  await control.close()
  await rm(folder, { recursive: true, force: true })
})

const open = (agentName = 'talker') =>
  control.json<Session>(201, 'POST', '/v1/sessions', { agentName, title: 'A talk' })
const send = (id: string, content: string, more = {}) =>
  control.json<TurnReply>(200, 'POST', `/v1/sessions/${id}/messages`, { content, ...more })
const get = (id: string) => control.json<Session>(200, 'GET', `/v1/sessions/${id}`)

interface Heard {
  id: number
  event: string
  data: { turnId?: string; seq?: number; delta?: string; text?: string; code?: string; reason?: string }
}

/** Reads a stream as a browser does; `events` grows while it is open. */
async function listen(id: string, headers: Record<string, string> = {}, query = '') {
  const answer = await control.call('GET', `/v1/sessions/${id}/events${query}`, undefined, headers)
  expect(answer.status).toBe(200)
  const events: Heard[] = []
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
  const done = (async () => {
    for (let text = ''; ; ) {
      const { value, done } = await reader.read()
      if (done) return
      text += value
      const frames = text.split('\n\n')
      text = frames.pop() ?? ''
      for (const frame of frames) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(frame)?.[1]
        if (field('event') === undefined || field('data') === undefined) continue
        events.push({
          id: Number(field('id')),
          event: field('event')!,
          data: JSON.parse(field('data')!) as Heard['data'],
        })
      }
    }
  })()
  return { events, done, close: () => reader.cancel() }
}

describe('a message with an Idempotency-Key', () => {
  it('leaves nothing of its reply at the control plane, and is answered again by the node alone', async () => {
    const { id } = await open()
    const post = (content = 'canary-question') =>
      control.call('POST', `/v1/sessions/${id}/messages`, { content }, { 'idempotency-key': 'k3' })
    const first = await post()
    const reply = (await first.json()) as TurnReply
    expect([first.status, reply.text]).toEqual([200, 'canary-answer to canary-question'])
    // Not even sealed: the control plane has the key of what it seals.
    const { rows } = await control.db.execute('select bound, status, answer from idempotency')
    expect(rows.map(row => [row.bound, row.status, row.answer])).toEqual([[reply.turnId, null, null]])
    const again = await post()
    expect([again.status, again.headers.get('idempotency-replayed'), await again.json()]).toEqual([200, 'true', reply])
    expect((await post('another')).status).toBe(409)
    expect(asked).toHaveLength(1)
    await one.kill()
    const away = await post()
    expect([away.status, await away.json()]).toMatchObject([503, { code: 'node_offline' }])
    await one.restart()
    const back = await until(async () => {
      const answer = await post()
      return answer.status === 200 && ((await answer.json()) as TurnReply)
    }, 'the node is back')
    expect(back).toEqual(reply)
    expect(asked).toHaveLength(1)
    expect(await filesOf(folder, 'control')).not.toMatch(/canary-(?:answer|question)/)
  })
})

describe('a session of an agent on a pool', () => {
  it('talks on one node, which has all that was said, and streams it through the tunnel', async () => {
    const session = await open()
    expect(session).toMatchObject({ status: 'active', title: 'A talk', turnCount: 0 })
    const stream = await listen(session.id)
    const first = await send(session.id, 'canary-one', { systemHint: 'canary-hint' })
    expect(first).toMatchObject({
      status: 'completed',
      text: 'canary-answer to canary-one',
      sessionId: session.id,
      tokensIn: 10,
      tokensOut: 5,
    })
    const second = await send(session.id, 'canary-two')
    expect(second.text).toBe('canary-answer to canary-two')
    // The second turn is given the first, and the hint stays.
    expect(asked[1]?.slice(1)).toEqual(['canary-one', 'canary-answer to canary-one', 'canary-two'])
    expect(asked[1]?.[0]).toContain('canary-hint')

    await until(
      async () => stream.events.filter(({ event }) => event === 'message_completed').length === 2,
      'both ends',
    )
    for (const reply of [first, second]) {
      const of = stream.events.filter(({ data }) => data.turnId === reply.turnId)
      const deltas = of.filter(({ event }) => event === 'message_delta')
      expect(deltas.map(({ data }) => data.delta).join('')).toBe(reply.text)
      expect(deltas.length).toBeGreaterThan(1)
      expect(of.at(-1)).toMatchObject({ event: 'message_completed', data: { text: reply.text } })
    }
    const ids = stream.events.map(({ id }) => id)
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
    await stream.close()

    const read = await get(session.id)
    expect(read).toMatchObject({ status: 'active', turnCount: 2, tokensIn: 20, tokensOut: 10 })
    expect(read.messages?.map(({ role, content }) => [role, content])).toEqual([
      ...[
        ['user', 'canary-one'],
        ['assistant', 'canary-answer to canary-one'],
      ],
      ...[
        ['user', 'canary-two'],
        ['assistant', 'canary-answer to canary-two'],
      ],
    ])
    const run = await control.json<Run>(200, 'GET', `/v1/runs/${first.turnId}`)
    expect(run).toMatchObject({ status: 'succeeded', nodeId: one.identity.nodeId, sessionId: session.id })
    expect(run.input).toMatchObject({ message: 'canary-one' })
    await control.json(200, 'GET', `/v1/runs/${first.turnId}/receipt`)
    expect(await filesOf(folder, 'one')).toContain(first.turnId)
    for (const side of ['one', 'control']) {
      expect(await filesOf(folder, side)).not.toMatch(/canary-(?:one|two|answer|hint|system)/)
    }
  })

  it('resumes its stream where a reader left off, pieces and ends, once each and from the node', async () => {
    const session = await open()
    await send(session.id, 'before')
    const more = Promise.withResolvers<void>()
    says = async ({ onDelta }) => {
      onDelta?.('canary-a ')
      await more.promise
      onDelta?.('canary-b')
      return 'canary-a canary-b'
    }
    const stream = await listen(session.id)
    const sent = send(session.id, 'again')
    await until(async () => stream.events.some(({ data }) => data.delta === 'canary-a '), 'the first piece')
    const { id } = stream.events.find(({ data }) => data.delta === 'canary-a ')!
    await stream.close()
    const resumed = await listen(session.id, { 'last-event-id': String(id) })
    more.resolve()
    await sent
    await until(async () => resumed.events.some(({ event }) => event === 'message_completed'), 'the end')
    expect(resumed.events.map(({ event, data }) => [event, data.delta ?? data.text])).toEqual([
      ...[
        ['message_delta', 'canary-b'],
        ['message_completed', 'canary-a canary-b'],
      ],
    ])
    await resumed.close()
    // A new reader who wants what was said before gets it from the node.
    const late = await listen(session.id, {}, '?replay=2')
    await until(async () => late.events.length === 2, 'both ends')
    expect(late.events.map(({ data }) => data.text)).toEqual(['canary-answer to before', 'canary-a canary-b'])
    await late.close()
    expect(await filesOf(folder, 'control')).not.toMatch(/canary-[ab]/)
  })

  it('gives the whole text in the end where the tunnel was cut while it was said', async () => {
    const session = await open()
    const [cut, more] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    says = async ({ onDelta }) => {
      onDelta?.('one ')
      await cut.promise
      onDelta?.('two ')
      await more.promise
      onDelta?.('three')
      return 'one two three'
    }
    const stream = await listen(session.id)
    const sent = send(session.id, 'talk')
    await until(async () => stream.events.some(({ data }) => data.delta === 'one '), 'the first piece')
    one.link.cut()
    cut.resolve()
    await new Promise(resolve => setImmediate(resolve))
    one.link.mend()
    await until(async () => {
      const node = await control.json<{ status: string }>(200, 'GET', `/v1/nodes/${one.identity.nodeId}`)
      return one.link.streams > 1 && node.status === 'online'
    }, 'the node is back')
    more.resolve()
    expect(await sent).toMatchObject({ status: 'completed', text: 'one two three' })
    await until(async () => stream.events.some(({ event }) => event === 'message_completed'), 'the end')
    const deltas = stream.events.filter(({ event }) => event === 'message_delta')
    const begins = deltas.findLastIndex(({ data }) => data.seq === 1)
    expect(
      deltas
        .slice(begins)
        .map(({ data }) => data.delta)
        .join(''),
    ).toBe('one two three')
    await stream.close()
  })

  it('is stopped in the middle of a turn, and deleted with what its node has of it', async () => {
    const session = await open()
    const begun = Promise.withResolvers<void>()
    says = async ({ signal }) => {
      begun.resolve()
      return new Promise<string>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    }
    const sent = control.call('POST', `/v1/sessions/${session.id}/messages`, { content: 'long' })
    await begun.promise
    const stream = await listen(session.id)
    expect(await control.json(409, 'POST', `/v1/sessions/${session.id}/messages`, { content: 'x' })).toMatchObject({
      code: 'session_busy',
    })
    await control.json(200, 'POST', `/v1/sessions/${session.id}/stop`, {})
    expect(await (await sent).json()).toMatchObject({ code: 'session_stopped' })
    await stream.done
    expect(stream.events.at(-1)).toMatchObject({ event: 'session_stopped', data: { reason: 'stopped' } })
    const [turn] = await control.json<Run[]>(200, 'GET', `/v1/runs?sessionId=${session.id}&fields=summary`)
    expect(turn).toMatchObject({ status: 'cancelled' })
    await until(async () => {
      const { rows } = await one.db.execute({ sql: 'select status from sessions where id = ?', args: [session.id] })
      return rows[0]?.status === 'stopped'
    }, 'its node has stopped it')
    expect((await control.call('DELETE', `/v1/sessions/${session.id}`)).status).toBe(204)
    await until(async () => {
      const { rows } = await one.db.execute('select (select count(*) from sessions) + (select count(*) from turns)')
      return Number(rows[0]?.[0]) === 0
    }, 'its node has forgotten it')
    expect((await control.call('GET', `/v1/sessions/${session.id}`)).status).toBe(404)
  })

  it('tells a turn that failed, and goes on', async () => {
    const session = await open()
    says = async () => {
      throw new Error('canary-fault')
    }
    const failed = await control.call('POST', `/v1/sessions/${session.id}/messages`, { content: 'x' })
    expect(failed.ok).toBe(false)
    says = async () => 'fine'
    expect(await send(session.id, 'y')).toMatchObject({ text: 'fine' })
    expect(await get(session.id)).toMatchObject({ status: 'active', turnCount: 2 })
  })

  it('waits for its node and says so, goes on after a restart of it, and refuses what this version lacks', async () => {
    const session = await open()
    await send(session.id, 'first')
    await one.kill()
    await until(
      async () => (await control.call('GET', `/v1/sessions/${session.id}`)).status === 503,
      'what was said is away',
    )
    expect(await control.json(503, 'POST', `/v1/sessions/${session.id}/messages`, { content: 'x' })).toMatchObject({
      code: 'node_offline',
    })
    expect(await control.json(503, 'POST', '/v1/sessions', { agentName: 'talker' })).toMatchObject({
      code: 'node_offline',
    })
    expect(await control.json<Session[]>(200, 'GET', '/v1/sessions')).toHaveLength(1)
    await one.restart()
    await until(async () => (await control.call('GET', `/v1/sessions/${session.id}`)).ok, 'it is back')
    expect((await send(session.id, 'second')).text).toBe('canary-answer to second')
    expect(asked.at(-1)?.slice(1)).toEqual(['first', 'canary-answer to first', 'second'])

    const environment = { place: 'here' }
    expect(await control.json(400, 'POST', '/v1/sessions', { agentName: 'talker', environment })).toMatchObject({
      error: expect.stringContaining('environment'),
    })
    const manifest = { isolation: 'microvm', session: { dedicatedMicrovm: true } }
    await control.json(201, 'POST', '/v1/agents', { name: 'boxed', labels, manifest })
    expect(await control.json(503, 'POST', '/v1/sessions', { agentName: 'boxed' })).toMatchObject({
      code: 'isolation_unavailable',
    })
  })
})
