import { afterEach, describe, expect, it } from 'vitest'
import { StepFailure } from '../../runtime/execution/failure.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import { eventually } from '../eventually.ts'
import {
  type Answer,
  answerOf,
  closeAll,
  fixture,
  get,
  joined,
  listen,
  said,
  saying,
  send,
  stepped,
  upTo,
} from './session-fixture.ts'

afterEach(closeAll)

describe('a session', () => {
  it('is opened, read, listed and filtered', async () => {
    const on = await fixture(undefined)
    const session = await on.opened({ title: 'Trip', labels: { team: 'a' }, environment: { a: [1] } })
    expect(session).toMatchObject({
      agentName: 'friend',
      status: 'active',
      title: 'Trip',
      labels: { team: 'a' },
      environment: { a: [1] },
      tokensIn: 0,
      tokensOut: 0,
      costUsd: 0,
      turnCount: 0,
      tenantId: 'default',
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
    const on = await fixture(undefined)
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
    const on = await fixture(undefined, {}, { session: { dedicatedMicrovm: true, idleTimeoutSeconds: 60 } })
    const answer = await on.call('POST', '/v1/sessions', { agentName: 'friend' })
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({ code: 'isolation_unavailable' })
    expect(await on.json(200, 'GET', '/v1/sessions')).toEqual([])
  })

  it('belongs to its tenant', async () => {
    const on = await fixture(undefined)
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
    const on = await fixture([saying('Hello', ' you'), saying('Again')], { masterKey: new Uint8Array(32).fill(9) })
    const { id } = await on.opened()
    const reply = await said(on, id, 'Hi')
    expect(reply).toEqual({
      turnId: reply.turnId,
      sessionId: id,
      text: 'Hello you',
      status: 'completed',
      finish: 'complete',
      tokensIn: 10,
      tokensOut: 5,
      costUsd: 0.000002,
    })
    const run = await on.json<Run>(200, 'GET', `/v1/runs/${reply.turnId}`)
    expect(run).toMatchObject({
      status: 'succeeded',
      sessionId: id,
      trigger: { kind: 'session', ref: id },
      input: { message: 'Hi' },
      output: { result: 'Hello you' },
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
    const on = await fixture(answers, {}, { session: { historyTurns: 1 }, systemPrompt: 'Be kind.' })
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
    const on = await fixture([saying('one'), saying('two')])
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
    const on = await fixture([])
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
    const on = await fixture(
      [saying('x'), saying('y'), calling, saying('z')],
      {},
      {
        tools: ['http_request', 'wait'],
        subAgents: [{ name: 'other' }],
        egress: [{ host: 'a.example' }],
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
    const on = await fixture([slow.answer])
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
    const on = await fixture([slow.answer])
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
    const on = await fixture([saying('x')])
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
    const on = await fixture([saying('x')])
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
    const on = await fixture(
      [wrong, saying('not an object'), saying('{"a":1}')],
      {},
      {
        outputSchema: { type: 'object', required: ['a'] },
        outputRepairs: 0,
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
    const on = await fixture([asking, saying('Fine')], {}, { tools: ['ask_human'] })
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
    const on = await fixture([slow.answer], { turnTimeoutMs: 20 })
    const { id } = await on.opened()
    const events = await listen(on, id)
    expect(await said(on, id, 'a')).toMatchObject({ status: 'processing', text: '' })
    await slow.say('late')
    slow.end()
    expect((await upTo(events, 'message_completed')).at(-1)?.data).toMatchObject({ text: 'late' })
    await events.stop()
  })

  it('happens once for one idempotency key', async () => {
    const on = await fixture([saying('one'), saying('two')])
    const { id } = await on.opened()
    const first = await (await send(on, id, 'a', {}, { 'idempotency-key': 'k' })).json()
    const again = await send(on, id, 'a', {}, { 'idempotency-key': 'k' })
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(await again.json()).toEqual(first)
    expect((await send(on, id, 'b', {}, { 'idempotency-key': 'k' })).status).toBe(409)
    expect((await get(on, id)).turnCount).toBe(1)
  })
})

describe('the end of a session', () => {
  it('may come in every status, and is final', async () => {
    const slow = stepped()
    const on = await fixture([slow.answer, saying('x')])
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

  it('takes the runs of its turns along where they have ended, and what they called', async () => {
    const slow = stepped()
    const on = await fixture([saying('one'), slow.answer, saying('three')], { receiptSeed: new Uint8Array(32).fill(3) })
    const { id } = await on.opened()
    const other = await on.opened()
    const { turnId } = (await (await send(on, id, 'a')).json()) as { turnId: string }
    await on.db.execute({
      sql: 'update runs set parent_run_id = ?, session_id = null where id = ?',
      args: [turnId, (await on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'friend', input: {} })).id],
    })
    await slow.asked
    const path = `/v1/sessions/${id}?runs=true`
    const early = await on.json<{ error: string; code: string }>(409, 'DELETE', path)
    expect(early).toMatchObject({ code: 'run_not_terminal', error: expect.stringContaining('stop the session') })
    expect((await get(on, id)).turnCount).toBe(1)
    slow.end()
    const said = (await (await send(on, other.id, 'b')).json()) as { turnId: string }
    const { rawKey } = await on.json<{ rawKey: string }>(201, 'POST', '/v1/api-keys', {
      name: 'k',
      scopes: ['sessions:write'],
    })
    const refused = await on.call('DELETE', path, undefined, { authorization: `Bearer ${rawKey}` })
    expect([refused.status, await refused.json()]).toMatchObject([403, { code: 'forbidden_scope' }])
    await eventually(async () => expect((await on.call('DELETE', path)).status).toBe(204))
    expect((await on.call('DELETE', path)).status).toBe(404)
    expect(await on.json<Run[]>(200, 'GET', '/v1/runs')).toEqual([])
    expect(await on.json<Run[]>(200, 'GET', '/v1/runs?trigger=session')).toMatchObject([{ id: said.turnId }])
    const left = await on.db.execute('select count(distinct run_id) as n from events')
    expect(left.rows[0]?.n).toBe(1)
    expect((await on.json<Receipt>(200, 'GET', `/v1/runs/${turnId}/receipt`)).payload.runId).toBe(turnId)
  })

  it('comes with the end of its agent', async () => {
    const slow = stepped()
    const on = await fixture([slow.answer])
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
