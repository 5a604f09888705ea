import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { StepFailure } from '../../runtime/execution/failure.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import {
  type Answer,
  answerOf,
  closeAll,
  closedByHand,
  fixture,
  get,
  ids,
  joined,
  listen,
  said,
  saying,
  send,
  stepped,
  upTo,
} from './session-fixture.ts'
import type { Received } from './sse.ts'

afterEach(closeAll)

describe('the stream of a session', () => {
  it('tells deltas that join to the text, with seq from 1 in each turn and ids that count', async () => {
    const on = await fixture([saying('Hel', 'lo ', '\ud83d', '\ude00!'), saying('Bye')])
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
    const on = await fixture([broken, saying('The ', 'whole')])
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
    const on = await fixture([wrong, slow.answer])
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
    const on = await fixture([saying('before'), slow.answer])
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
    const on = await fixture([saying('a', 'b', 'c'), saying('d', 'e'), slow.answer])
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
    const on = await fixture([slow.answer])
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
    // A reader that has heard it comes back for nothing, as a browser does until the server tells it to stay away.
    const last = Number(rest[0]?.id)
    const again = (seen: number) =>
      on.call('GET', `/v1/sessions/${id}/events`, undefined, { 'last-event-id': String(seen) })
    expect([(await again(last)).status, (await again(last + 5)).status]).toEqual([204, 204])
    expect(await (await listen(on, id, '', String(last - 1))).all()).toMatchObject([{ event: 'session_stopped' }])
    expect((await get(on, id)).status).toBe('stopped')
  })

  it('sends its headers at once and heartbeats in between', async () => {
    const on = await fixture([], { sseHeartbeatMs: 5 })
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

const fileUrl = async () => join(await mkdtemp(join(tmpdir(), 'waybill-sessions-')), 'waybill.db')

describe('a restart', () => {
  it('finishes the turn that was interrupted, and its stream begins that turn anew', async () => {
    const url = await fileUrl()
    const first = stepped()
    const before = await fixture([saying('zero'), first.answer], { url })
    const { id } = await before.opened()
    const whole = await listen(before, id)
    await said(before, id, '0')
    const cut = send(before, id, 'a', {}, { 'idempotency-key': 'k' })
    await first.say('Half of ')
    const seen = [...(await upTo(whole, 'message_completed')), ...(await upTo(whole, 'message_delta'))]
    expect(seen.at(-1)?.data).toMatchObject({ delta: 'Half of ' })
    closedByHand()
    await before.close()
    expect(await (await cut).json()).toMatchObject({ status: 'processing' })

    const second = stepped()
    const after = await fixture([second.answer, saying('next')], { url })
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
    const before = await fixture([looking, first.answer], { url }, { tools: ['wait'] })
    const { id } = await before.opened()
    const cut = send(before, id, 'a')
    await first.say('Half of ')
    closedByHand()
    await before.close()
    await cut

    const second = stepped()
    const after = await fixture([second.answer], { url })
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
  const one = await fixture([slow.answer], { url })
  const two = await fixture([], { url, limits: { maxConcurrent: 0 } })
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
