import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { StepFailure } from '../../runtime/execution/failure.ts'
import type { FoundModel, ModelAnswer, ModelCall, ModelRequest } from '../../runtime/execution/models/model.ts'
import type { RuntimeOptions } from '../../runtime/runtime.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Session, TurnReply } from '../../shared/wire/runtime/session.ts'
import { type Api, api } from './api.ts'
import type { Received } from './sse.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

type Answer = (request: ModelRequest, call: ModelCall) => Promise<ModelAnswer>

const answerOf = (text: string, more: Partial<ModelAnswer> = {}): ModelAnswer => ({
  ...{ text, toolCalls: [], stop: 'end', provider: 'test', model: 'test/model' },
  spent: { tokensIn: 10, tokensOut: 5, costNano: 2000 },
  ...more,
})

/** Says the pieces one after the other. */
const saying =
  (...pieces: string[]): Answer =>
  async (_request, { onDelta }) => {
    for (const piece of pieces) onDelta?.(piece)
    return answerOf(pieces.join(''))
  }

/** A model that the test lets speak piece by piece. */
function stepped() {
  const asked = Promise.withResolvers<ModelCall>()
  const ended = Promise.withResolvers<ModelAnswer>()
  const answer: Answer = async (_request, call) => {
    asked.resolve(call)
    return ended.promise
  }
  let text = ''
  return {
    answer,
    asked: asked.promise,
    async say(piece: string) {
      text += piece
      ;(await asked.promise).onDelta?.(piece)
    },
    end: () => ended.resolve(answerOf(text)),
  }
}

async function room(
  answers: Answer[] | undefined,
  options: Partial<RuntimeOptions> & { url?: string } = {},
  manifest = {},
) {
  const seen: ModelRequest[] = []
  const model: FoundModel = {
    id: 'test/model',
    ask(request, call) {
      seen.push(structuredClone(request))
      const answer = answers?.shift()
      if (!answer) throw new Error('nothing is scripted')
      return answer(request, call)
    },
  }
  const on = await api({ ...(answers && { models: { find: async () => model } }), ...options })
  open.push(on)
  const retry = { maxAttempts: 2, backoffMs: 0, maxBackoffMs: 1, jitter: false }
  const made = await on.call('GET', '/v1/agents/friend')
  if (made.status === 404)
    await on.json(201, 'POST', '/v1/agents', { name: 'friend', manifest: { retry, ...manifest } })
  return {
    ...{ ...on, seen },
    opened: (more = {}) => on.json<Session>(201, 'POST', '/v1/sessions', { agentName: 'friend', ...more }),
  }
}

const send = ({ call }: Pick<Api, 'call'>, id: string, content: string, more = {}, headers = {}) =>
  call('POST', `/v1/sessions/${id}/messages`, { content, ...more }, headers)
const said = async (on: Pick<Api, 'call'>, id: string, content: string, more = {}): Promise<TurnReply> => {
  const answer = await send(on, id, content, more)
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`)
  return JSON.parse(text) as TurnReply
}
const get = ({ json }: Pick<Api, 'json'>, id: string) => json<Session>(200, 'GET', `/v1/sessions/${id}`)
const listen = (on: Pick<Api, 'events'>, id: string, query = '', lastId?: string) =>
  on.events(`/v1/sessions/${id}/events${query}`, lastId === undefined ? {} : { 'last-event-id': lastId })

/** Events up to and with the one of that name. */
async function upTo(stream: { next(): Promise<Received | undefined> }, ...names: string[]): Promise<Received[]> {
  const found: Received[] = []
  for (;;) {
    const one = await stream.next()
    if (!one) throw new Error(`the stream ended before ${names.join(' or ')}`)
    found.push(one)
    if (names.includes(one.event ?? '')) return found
  }
}

/** The text that a reader has who begins anew at seq 1. */
function joined(events: readonly Received[]): string {
  let text = ''
  let expected = 1
  for (const { event, data } of events) {
    if (event !== 'message_delta') continue
    if (data.seq === 1) {
      text = ''
      expected = 1
    }
    expect(data.seq).toBe(expected++)
    text += String(data.delta)
  }
  return text
}

const ids = (events: readonly Received[]) => events.map(({ id }) => Number(id))

describe('a session', () => {
  it('is opened, read, listed and filtered', async () => {
    const on = await room(undefined)
    const session = await on.opened({ title: 'Trip', labels: { team: 'a' }, environment: { a: [1] } })
    expect(session).toMatchObject({
      ...{ agentName: 'friend', status: 'active', title: 'Trip', labels: { team: 'a' }, environment: { a: [1] } },
      ...{ tokensIn: 0, tokensOut: 0, costUsd: 0, turnCount: 0, tenantId: 'default' },
    })
    expect(session).not.toHaveProperty('messages')
    expect(await get(on, session.id)).toEqual({ ...session, messages: [] })
    const other = await on.json<Session>(201, 'POST', '/v1/sessions', { agent_name: 'friend' })
    expect((await on.json<Session[]>(200, 'GET', '/v1/sessions')).map(({ id }) => id)).toEqual([other.id, session.id])
    const page = await on.call('GET', '/v1/sessions?limit=1&agent=friend')
    expect(await page.json()).toHaveLength(1)
    expect(page.headers.get('link')).toContain('rel="next"')
    expect(await on.json(200, 'GET', '/v1/sessions?agentName=nobody')).toEqual([])
    expect(await on.json(200, 'GET', '/v1/sessions?status=stopped')).toEqual([])
  })

  it('needs an agent, and refuses what it does not know', async () => {
    const on = await room(undefined)
    expect((await on.call('POST', '/v1/sessions', { agentName: 'nobody' })).status).toBe(404)
    expect((await on.call('POST', '/v1/sessions', {})).status).toBe(400)
    expect((await on.call('POST', '/v1/sessions', { agentName: 'friend', extra: 1 })).status).toBe(400)
    expect((await on.call('POST', '/v1/sessions', { agentName: 'friend', title: '\ud800' })).status).toBe(400)
    const { id } = await on.opened()
    for (const bad of [{}, { content: '' }, { content: 'x'.repeat(100_001) }, { content: 'x', more: 1 }]) {
      expect((await on.call('POST', `/v1/sessions/${id}/messages`, bad)).status).toBe(400)
    }
  })

  it('is refused where it asks for a microVM of its own', async () => {
    const on = await room(undefined, {}, { session: { dedicatedMicrovm: true, idleTimeoutSeconds: 60 } })
    const answer = await on.call('POST', '/v1/sessions', { agentName: 'friend' })
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({ code: 'isolation_unavailable' })
    expect(await on.json(200, 'GET', '/v1/sessions')).toEqual([])
  })

  it('belongs to its tenant', async () => {
    const on = await room(undefined)
    const { id } = await on.opened()
    const { id: tenantId } = await on.json<{ id: string }>(201, 'POST', '/v1/tenants', { name: 'other' })
    const { rawKey } = await on.json<{ rawKey: string }>(201, 'POST', `/v1/tenants/${tenantId}/api-keys`, { name: 'k' })
    const theirs = { authorization: `Bearer ${rawKey}` }
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['GET', '/events', undefined],
      ['POST', '/messages', { content: 'x' }],
      ['POST', '/stop', {}],
      ['DELETE', '', undefined],
    ] as const) {
      const foreign = await on.call(method, `/v1/sessions/${id}${path}`, body, theirs)
      expect(foreign.status, `${method} ${path}`).toBe(403)
      expect(await foreign.json()).toMatchObject({ code: 'forbidden_tenant' })
      const unknown = await on.call(method, `/v1/sessions/${tenantId}${path}`, body)
      expect(unknown.status, `${method} ${path}`).toBe(404)
    }
    const list = await on.call('GET', '/v1/sessions', undefined, theirs)
    expect(await list.json()).toEqual([])
    await on.json(201, 'POST', '/v1/agents', { name: 'theirs', manifest: {} })
    expect((await on.call('DELETE', '/v1/tenants/default')).status).toBe(409)
  })
})

describe('a turn', () => {
  it('is a run with a journal and a receipt, and adds to its session', async () => {
    const on = await room([saying('Hello', ' you'), saying('Again')], { masterKey: new Uint8Array(32).fill(9) })
    const { id } = await on.opened()
    const reply = await said(on, id, 'Hi')
    expect(reply).toEqual({
      ...{ turnId: reply.turnId, sessionId: id, text: 'Hello you', status: 'completed' },
      ...{ tokensIn: 10, tokensOut: 5, costUsd: 0.000002 },
    })
    const run = await on.json<Run>(200, 'GET', `/v1/runs/${reply.turnId}`)
    expect(run).toMatchObject({
      ...{ status: 'succeeded', sessionId: id, trigger: { kind: 'session', ref: id } },
      ...{ input: { message: 'Hi' }, output: { result: 'Hello you' } },
    })
    const { payload } = await on.json<Receipt>(200, 'GET', `/v1/runs/${reply.turnId}/receipt`)
    expect(payload).toMatchObject({ runId: reply.turnId, status: 'succeeded' })
    const next = await said(on, id, 'More')
    expect(await on.json<Run[]>(200, 'GET', '/v1/runs')).toEqual([])
    expect((await on.json<Run[]>(200, 'GET', `/v1/runs?sessionId=${id}`)).map(one => one.id)).toEqual([
      next.turnId,
      reply.turnId,
    ])
    const session = await get(on, id)
    expect(session).toMatchObject({ status: 'active', turnCount: 2, tokensIn: 20, tokensOut: 10, costUsd: 0.000004 })
    expect(session.messages?.map(({ turnId, role, content }) => [turnId, role, content])).toEqual([
      [reply.turnId, 'user', 'Hi'],
      [reply.turnId, 'assistant', 'Hello you'],
      [next.turnId, 'user', 'More'],
      [next.turnId, 'assistant', 'Again'],
    ])
  })

  it('knows the turns before it, as many as the manifest says, and not the ones that failed', async () => {
    const wrong: Answer = async () => {
      throw new StepFailure('bad_request', 'no')
    }
    const answers = [saying('one'), wrong, saying('three'), saying('four')]
    const on = await room(answers, {}, { session: { historyTurns: 1 }, systemPrompt: 'Be kind.' })
    const { id } = await on.opened()
    await said(on, id, 'a', { systemHint: 'In French.', turnHint: 'Short.' })
    expect((await send(on, id, 'b')).status).toBe(502)
    await said(on, id, 'c')
    await said(on, id, 'd', { systemHint: '' })
    expect(on.seen.map(({ system }) => system)).toEqual([
      'Be kind.\n\nIn French.\n\nShort.',
      'Be kind.\n\nIn French.',
      'Be kind.\n\nIn French.',
      'Be kind.',
    ])
    const texts = on.seen.map(({ messages }) => messages.map(message => 'text' in message && message.text))
    expect(texts).toEqual([['a'], ['a', 'one', 'b'], ['a', 'one', 'c'], ['c', 'three', 'd']])
  })

  it('gives the model the text of attachments, in this turn and in later ones', async () => {
    const on = await room([saying('one'), saying('two')])
    const { id } = await on.opened()
    const data = Buffer.from('a,b\n1,ü\0').toString('base64')
    await said(on, id, 'Read this', { attachments: [{ name: 'x.csv', mediaType: 'text/csv; charset=utf-8', data }] })
    await said(on, id, 'And?')
    const [first] = on.seen[1]!.messages
    expect(first).toMatchObject({ role: 'user', text: expect.stringContaining('a,b\n1,ü\0') })
    expect((await get(on, id)).messages?.[0]?.content).toBe('Read this')
  })

  it.each([
    ['an image', { name: 'x.png', mediaType: 'image/png', data: 'AAAA' }, 'attachments.0.mediaType'],
    [
      'another charset',
      { name: 'x', mediaType: 'text/plain; charset=latin1', data: 'AAAA' },
      'attachments.0.mediaType',
    ],
    ['bytes that are no text', { name: 'x', mediaType: 'text/plain', data: '/w==' }, 'attachments.0.data'],
    ['what is not base64', { name: 'x', mediaType: 'text/plain', data: '?' }, 'attachments.0.data'],
  ])('refuses %s', async (_, attachment, path) => {
    const on = await room([])
    const { id } = await on.opened()
    const answer = await send(on, id, 'x', { attachments: [attachment] })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ details: [{ path }] })
    const eleven = Array.from({ length: 11 }, () => ({ name: 'x', mediaType: 'text/plain', data: 'AAAA' }))
    expect((await send(on, id, 'x', { attachments: eleven })).status).toBe(400)
    expect(await get(on, id)).toMatchObject({ status: 'active', turnCount: 0 })
  })

  it('may be without tools, or with those that only read', async () => {
    const calling: Answer = async () =>
      answerOf('', {
        toolCalls: [{ id: 'c1', name: 'http_request', arguments: { url: 'https://a.example/', method: 'POST' } }],
        stop: 'tools',
      })
    const on = await room(
      [saying('x'), saying('y'), calling, saying('z')],
      {},
      {
        ...{ tools: ['http_request', 'wait'], subAgents: [{ name: 'other' }], egress: [{ host: 'a.example' }] },
      },
    )
    const { id } = await on.opened()
    await said(on, id, 'a')
    await said(on, id, 'b', { noTools: true })
    await said(on, id, 'c', { readOnlyTools: true })
    expect(on.seen.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
      ['http_request', 'wait', 'agent__other'],
      [],
      ['http_request', 'wait'],
      ['http_request', 'wait'],
    ])
    expect(JSON.stringify(on.seen[3]!.messages.at(-1))).toContain('may only read')
    expect((await get(on, id)).messages?.at(-1)).toMatchObject({ toolCalls: [{ name: 'http_request' }] })
  })

  it('is refused while another goes on, and once the session is stopped', async () => {
    const slow = stepped()
    const on = await room([slow.answer])
    const { id } = await on.opened()
    const first = said(on, id, 'a')
    await slow.asked
    expect(await get(on, id)).toMatchObject({ status: 'processing', messages: [{ role: 'user', content: 'a' }] })
    const busy = await send(on, id, 'b')
    expect(busy.status).toBe(409)
    expect(await busy.json()).toMatchObject({ code: 'session_busy' })
    slow.end()
    await first
    await on.json(200, 'POST', `/v1/sessions/${id}/stop`)
    const stopped = await send(on, id, 'c')
    expect(stopped.status).toBe(409)
    expect(await stopped.json()).toMatchObject({ code: 'session_stopped' })
  })

  it('is one of many that come at once', async () => {
    const slow = stepped()
    const on = await room([slow.answer])
    const { id } = await on.opened()
    const refused = Promise.withResolvers<void>()
    let left = 19
    const all = Array.from({ length: 20 }, async (_, n) => {
      const { status } = await send(on, id, `m${n}`)
      if (status === 409 && --left === 0) refused.resolve()
      return status
    })
    await Promise.all([slow.asked, refused.promise])
    slow.end()
    expect((await Promise.all(all)).filter(status => status === 200)).toHaveLength(1)
    expect(await get(on, id)).toMatchObject({ status: 'active', turnCount: 1 })
    expect(await on.json(200, 'GET', `/v1/runs?sessionId=${id}`)).toHaveLength(1)
  })

  it('over a hard budget is 402, and the session stays active', async () => {
    const on = await room([saying('x')])
    await on.json(200, 'PUT', '/v1/agents/friend/budget', { maxRunsPerDay: 1 })
    const { id } = await on.opened()
    await said(on, id, 'a')
    const answer = await send(on, id, 'b', { systemHint: 'never kept' })
    expect(answer.status).toBe(402)
    expect(await answer.json()).toMatchObject({ code: 'budget_exceeded', dimension: 'runsPerDay' })
    expect(await get(on, id)).toMatchObject({ status: 'active', turnCount: 1 })
    expect(await on.json(200, 'GET', `/v1/runs?sessionId=${id}`)).toHaveLength(1)
  })

  it('is 402 as well where a turn is stopped by it at its first call, and the session stays active', async () => {
    const on = await room([saying('x')])
    const { id } = await on.opened()
    await on.json(200, 'PUT', '/v1/agents/friend/budget', { maxTokensPerDay: 5 })
    const answer = await send(on, id, 'a')
    expect([answer.status, await answer.json()]).toMatchObject([
      402,
      { code: 'budget_exceeded', dimension: 'tokensPerDay', limit: 5, used: 0 },
    ])
    expect(await get(on, id)).toMatchObject({ status: 'active' })
  })

  it('answers 502 when the provider failed and 500 otherwise, and the session goes on', async () => {
    const wrong: Answer = async () => {
      throw new StepFailure('bad_request', 'the provider said no')
    }
    const on = await room(
      [wrong, saying('not an object'), saying('{"a":1}')],
      {},
      {
        ...{ outputSchema: { type: 'object', required: ['a'] }, outputRepairs: 0 },
      },
    )
    const { id } = await on.opened()
    const first = await send(on, id, 'a')
    expect(first.status).toBe(502)
    expect(await first.json()).toMatchObject({ code: 'upstream_failed', error: 'the provider said no' })
    const second = await send(on, id, 'b')
    expect(second.status).toBe(500)
    expect(await second.json()).toMatchObject({ error: expect.stringContaining('output_invalid') })
    expect(await said(on, id, 'c')).toMatchObject({ text: '{"a":1}' })
  })

  it('that needs a human answers waiting and ends on the stream', async () => {
    const asking: Answer = async () =>
      answerOf('One moment.', {
        toolCalls: [{ id: 'c', name: 'ask_human', arguments: { prompt: 'ok?' } }],
        stop: 'tools',
      })
    const on = await room([asking, saying('Fine')], {}, { tools: ['ask_human'] })
    const { id } = await on.opened()
    const events = await listen(on, id)
    const reply = await said(on, id, 'a')
    expect(reply).toMatchObject({ status: 'waiting', text: '', sessionId: id, tokensIn: 10 })
    expect(await get(on, id)).toMatchObject({ status: 'processing' })
    const [approval] = await on.json<{ id: string }[]>(200, 'GET', `/v1/runs/${reply.turnId}/approvals`)
    await on.json(200, 'POST', `/v1/approvals/${approval!.id}/approve`, { output: 'yes' })
    const all = await upTo(events, 'message_completed')
    expect(all.at(-1)?.data).toMatchObject({ text: 'One moment.\n\nFine', turnId: reply.turnId })
    expect(all.filter(({ data }) => data.seq === 1)).toHaveLength(1)
    expect(joined(all)).toBe('One moment.\n\nFine')
    expect(await get(on, id)).toMatchObject({ status: 'active' })
    await events.stop()
  })

  it('that takes longer than a caller waits answers processing and ends on the stream', async () => {
    const slow = stepped()
    const on = await room([slow.answer], { turnTimeoutMs: 20 })
    const { id } = await on.opened()
    const events = await listen(on, id)
    expect(await said(on, id, 'a')).toMatchObject({ status: 'processing', text: '' })
    await slow.say('late')
    slow.end()
    expect((await upTo(events, 'message_completed')).at(-1)?.data).toMatchObject({ text: 'late' })
    await events.stop()
  })

  it('happens once for one idempotency key', async () => {
    const on = await room([saying('one'), saying('two')])
    const { id } = await on.opened()
    const first = await (await send(on, id, 'a', {}, { 'idempotency-key': 'k' })).json()
    const again = await send(on, id, 'a', {}, { 'idempotency-key': 'k' })
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(await again.json()).toEqual(first)
    expect((await send(on, id, 'b', {}, { 'idempotency-key': 'k' })).status).toBe(409)
    expect((await get(on, id)).turnCount).toBe(1)
  })
})

describe('the stream of a session', () => {
  it('tells deltas that join to the text, with seq from 1 in each turn and ids that count', async () => {
    const on = await room([saying('Hel', 'lo ', '\ud83d', '\ude00!'), saying('Bye')])
    const { id } = await on.opened()
    const events = await listen(on, id)
    const first = await said(on, id, 'a')
    const one = await upTo(events, 'message_completed')
    expect(joined(one)).toBe('Hello 😀!')
    expect(one.at(-1)).toMatchObject({
      data: {
        sessionId: id,
        turnId: first.turnId,
        text: 'Hello 😀!',
        usage: { tokensIn: 10, tokensOut: 5, costUsd: 0.000002 },
      },
    })
    expect(first.text).toBe('Hello 😀!')
    await said(on, id, 'b')
    const two = await upTo(events, 'message_completed')
    expect(joined(two)).toBe('Bye')
    expect(ids([...one, ...two])).toEqual([...one, ...two].map((_, at) => at + 1))
    await events.stop()
  })

  it('begins anew at seq 1 when an attempt breaks off in the middle', async () => {
    const broken: Answer = async (_request, { onDelta }) => {
      onDelta?.('Half of')
      throw new StepFailure('server_error', 'cut', { transient: true })
    }
    const on = await room([broken, saying('The ', 'whole')])
    const { id } = await on.opened()
    const events = await listen(on, id)
    await said(on, id, 'a')
    const all = await upTo(events, 'message_completed')
    expect(all.map(({ data }) => data.seq)).toEqual([1, 1, 2, 3, undefined])
    expect(joined(all)).toBe('The whole')
    await events.stop()
  })

  it('sends message_error when a turn fails or is cancelled', async () => {
    const slow = stepped()
    const wrong: Answer = async (_request, { onDelta }) => {
      onDelta?.('so')
      throw new StepFailure('bad_request', 'no')
    }
    const on = await room([wrong, slow.answer])
    const { id } = await on.opened()
    const events = await listen(on, id)
    await send(on, id, 'a')
    const failed = await upTo(events, 'message_error')
    expect(failed.at(-1)?.data).toMatchObject({ sessionId: id, code: 'model_error', error: 'no' })
    const second = send(on, id, 'b')
    await slow.asked
    const [run] = await on.json<Run[]>(200, 'GET', `/v1/runs?sessionId=${id}&status=running`)
    await on.json(200, 'POST', `/v1/runs/${run!.id}/cancel`)
    expect((await upTo(events, 'message_error')).at(-1)?.data).toMatchObject({ turnId: run!.id, code: 'cancelled' })
    expect((await second).status).toBe(500)
    expect(await get(on, id)).toMatchObject({ status: 'active' })
    await events.stop()
  })

  it('gives a late reader the turn in progress from its start', async () => {
    const slow = stepped()
    const on = await room([saying('before'), slow.answer])
    const { id } = await on.opened()
    await said(on, id, 'a')
    const turn = said(on, id, 'b')
    await slow.say('one ')
    await slow.say('two ')
    const events = await listen(on, id)
    expect((await events.next())?.data).toMatchObject({ seq: 1, delta: 'one ' })
    await slow.say('three')
    slow.end()
    await turn
    const rest = await upTo(events, 'message_completed')
    expect(rest.map(({ data }) => data.delta ?? data.text)).toEqual(['two ', 'three', 'one two three'])
    await events.stop()
    const replayed = await listen(on, id, '?replay=5')
    expect((await replayed.next())?.data).toMatchObject({ text: 'before' })
    expect((await replayed.next())?.data).toMatchObject({ text: 'one two three' })
    await replayed.stop()
    expect((await on.call('GET', `/v1/sessions/${id}/events?replay=21`)).status).toBe(400)
  })

  it('goes on after any Last-Event-ID, each event once', async () => {
    const slow = stepped()
    const on = await room([saying('a', 'b', 'c'), saying('d', 'e'), slow.answer])
    const { id } = await on.opened()
    const whole = await listen(on, id)
    await said(on, id, '1')
    await said(on, id, '2')
    const turn = said(on, id, '3')
    await slow.say('f')
    await slow.say('g')
    const told: Received[] = []
    while (told.length < 9) told.push((await whole.next())!)
    for (const [at, { id: lastId }] of told.entries()) {
      const again = await listen(on, id, '', lastId)
      for (const expected of told.slice(at + 1)) expect(await again.next()).toEqual(expected)
      await again.stop()
    }
    const last = await listen(on, id, '', told.at(-1)?.id)
    slow.end()
    await turn
    expect((await last.next())?.data).toMatchObject({ text: 'fg' })
    await last.stop()
    await whole.stop()
  })

  it('ends with session_stopped, also for who comes later', async () => {
    const slow = stepped()
    const on = await room([slow.answer])
    const { id } = await on.opened()
    const events = await listen(on, id)
    const turn = send(on, id, 'a')
    await slow.say('partial')
    expect((await events.next())?.event).toBe('message_delta')
    const stopped = await on.json<Session>(200, 'POST', `/v1/sessions/${id}/stop`)
    expect(stopped).toMatchObject({ status: 'stopped', stoppedAt: expect.any(String) })
    const rest = await events.all()
    expect(rest).toMatchObject([{ event: 'session_stopped', data: { sessionId: id, reason: 'stopped' } }])
    const late = await turn
    expect(late.status).toBe(409)
    const [run] = await on.json<Run[]>(200, 'GET', `/v1/runs?sessionId=${id}`)
    expect(run).toMatchObject({ status: 'cancelled' })
    slow.end()
    expect(await on.json<Session>(200, 'POST', `/v1/sessions/${id}/stop`)).toEqual(
      await on.json(200, 'GET', `/v1/sessions?status=stopped`).then(list => (list as Session[])[0]),
    )
    expect(await (await listen(on, id)).all()).toMatchObject([{ event: 'session_stopped' }])
    expect(await (await listen(on, id, '', rest[0]?.id)).all()).toMatchObject([{ event: 'session_stopped' }])
    expect((await get(on, id)).status).toBe('stopped')
  })

  it('sends its headers at once and heartbeats in between', async () => {
    const on = await room([], { sseHeartbeatMs: 5 })
    const { id } = await on.opened()
    const answer = await on.call('GET', `/v1/sessions/${id}/events`)
    expect(answer.headers.get('content-type')).toContain('text/event-stream')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const reader = answer.body!.pipeThrough(new TextDecoderStream() as never).getReader()
    expect((await reader.read()).value).toBe('retry: 1500\n\n')
    expect((await reader.read()).value).toBe(': heartbeat\n\n')
    await reader.cancel()
  })
})

describe('the end of a session', () => {
  it('may come in every status, and is final', async () => {
    const slow = stepped()
    const on = await room([slow.answer, saying('x')])
    const idle = await on.opened()
    const ended = await on.opened()
    await on.json(200, 'POST', `/v1/sessions/${ended.id}/stop`)
    const busy = await on.opened()
    const turn = send(on, busy.id, 'a')
    const { signal } = await slow.asked
    const events = await listen(on, busy.id)
    for (const { id } of [idle, ended, busy]) {
      expect((await on.call('DELETE', `/v1/sessions/${id}`)).status).toBe(204)
      expect((await on.call('DELETE', `/v1/sessions/${id}`)).status).toBe(404)
      expect((await on.call('GET', `/v1/sessions/${id}`)).status).toBe(404)
    }
    expect((await events.all()).at(-1)).toMatchObject({ event: 'session_stopped', data: { reason: 'deleted' } })
    expect(signal.aborted).toBe(true)
    expect((await turn).status).toBe(409)
    const [run] = await on.json<Run[]>(200, 'GET', '/v1/runs?trigger=session')
    expect(run).toMatchObject({ status: 'cancelled' })
    const left = await on.db.execute('select (select count(*) from turns) + (select count(*) from sessions) as n')
    expect(left.rows[0]?.n).toBe(0)
  })

  it('comes with the end of its agent', async () => {
    const slow = stepped()
    const on = await room([slow.answer])
    const { id } = await on.opened()
    const events = await listen(on, id)
    const turn = send(on, id, 'a')
    await slow.asked
    expect((await on.call('DELETE', '/v1/agents/friend')).status).toBe(204)
    expect((await events.all()).at(-1)).toMatchObject({ event: 'session_stopped', data: { reason: 'agent_deleted' } })
    expect((await turn).status).toBe(409)
    expect(await get(on, id)).toMatchObject({ status: 'stopped', agentName: 'friend' })
    expect((await on.call('POST', '/v1/sessions', { agentName: 'friend' })).status).toBe(404)
  })
})

const fileUrl = async () => join(await mkdtemp(join(tmpdir(), 'waybill-sessions-')), 'waybill.db')

describe('a restart', () => {
  it('finishes the turn that was interrupted, and its stream begins that turn anew', async () => {
    const url = await fileUrl()
    const first = stepped()
    const before = await room([saying('zero'), first.answer], { url })
    const { id } = await before.opened()
    const whole = await listen(before, id)
    await said(before, id, '0')
    const cut = send(before, id, 'a', {}, { 'idempotency-key': 'k' })
    await first.say('Half of ')
    const seen = [...(await upTo(whole, 'message_completed')), ...(await upTo(whole, 'message_delta'))]
    expect(seen.at(-1)?.data).toMatchObject({ delta: 'Half of ' })
    open.splice(0)
    await before.close()
    expect(await (await cut).json()).toMatchObject({ status: 'processing' })

    const second = stepped()
    const after = await room([second.answer, saying('next')], { url })
    const resumed = await listen(after, id, '', seen.at(-1)?.id)
    await second.say('The ')
    await second.say('whole')
    second.end()
    const rest = await upTo(resumed, 'message_completed')
    expect(joined(rest)).toBe('The whole')
    expect(rest.at(-1)?.data).toMatchObject({ text: 'The whole' })
    const all = ids([...seen, ...rest])
    expect(all).toEqual(all.toSorted((a, b) => a - b))
    expect(new Set(all).size).toBe(all.length)
    const early = await listen(after, id, '', seen[0]?.id)
    expect((await upTo(early, 'message_completed')).at(-1)?.data).toMatchObject({ text: 'zero' })
    expect((await upTo(early, 'message_completed')).at(-1)?.data).toMatchObject({ text: 'The whole' })
    await said(after, id, 'b')
    expect((await upTo(early, 'message_completed')).at(-1)?.data).toMatchObject({ text: 'next' })
    expect(await get(after, id)).toMatchObject({ status: 'active', turnCount: 3 })
    expect(after.seen.at(-1)?.messages.map(message => 'text' in message && message.text)).toEqual([
      ...['0', 'zero', 'a', 'The whole', 'b'],
    ])
    await early.stop()
    await resumed.stop()
  })

  it('tells the part of a turn that is on record without asking for it again', async () => {
    const url = await fileUrl()
    const first = stepped()
    const looking: Answer = async (_request, { onDelta }) => {
      onDelta?.('Let me look.')
      return answerOf('Let me look.', {
        toolCalls: [{ id: 'c', name: 'wait', arguments: { seconds: 0 } }],
        stop: 'tools',
      })
    }
    const before = await room([looking, first.answer], { url }, { tools: ['wait'] })
    const { id } = await before.opened()
    const cut = send(before, id, 'a')
    await first.say('Half of ')
    open.splice(0)
    await before.close()
    await cut

    const second = stepped()
    const after = await room([second.answer], { url })
    await second.say('Found it.')
    const events = await listen(after, id)
    second.end()
    const all = await upTo(events, 'message_completed')
    expect(joined(all)).toBe('Let me look.\n\nFound it.')
    expect(all.at(-1)?.data.text).toBe('Let me look.\n\nFound it.')
    expect(after.seen).toHaveLength(1)
    await events.stop()
  })
})

it('is seen by another process on the same store', async () => {
  const url = await fileUrl()
  const slow = stepped()
  const one = await room([slow.answer], { url })
  const two = await room([], { url, limits: { maxConcurrent: 0 } })
  const { id } = await one.opened()
  const events = await listen(two, id)
  const turn = said(one, id, 'a')
  await slow.say('from afar')
  slow.end()
  await turn
  expect((await upTo(events, 'message_completed')).at(-1)?.data).toMatchObject({ text: 'from afar' })
  await two.json(200, 'POST', `/v1/sessions/${id}/stop`)
  expect((await events.next())?.event).toBe('session_stopped')
  expect((await send(one, id, 'b')).status).toBe(409)
})
