import { Hono } from 'hono'
import { expect, it } from 'vitest'
import { silentLog } from '../../../shared/log/log.ts'
import { utf8 } from '../../../shared/sign/bytes.ts'
import { manualClock } from '../../../shared/time/testing/manual-clock.ts'
import type { PeerCommand } from '../../../shared/wire/runtime/peer.ts'
import { answerErrors } from '../../errors.ts'
import type { NodeLink, NodeReadRequest } from '../registry/node-link.ts'
import { peerClient } from './peer-client.ts'
import { packed, peerEncryption, unpacked } from './peer-encryption.ts'
import { PEER_PATH, PEER_SKEW_MS, peerRoute } from './peer-route.ts'

const URL_A = 'http://a.internal:8080'
const read: PeerCommand = { ask: 'read', nodeId: 'one', kind: 'events', id: 'r', from: 3, limit: 7 }
const key = (fill: number) => new Uint8Array(32).fill(fill)

/** A control plane that one node has dialled, and another one that asks it. */
function fixture({ askedWith = key(1) } = {}) {
  const clock = manualClock(new Date('2026-01-01T00:00:00Z'))
  clock.advance(3_600_000)
  const asked: (NodeReadRequest | string)[] = []
  let answer: Promise<{ status: number; body: Uint8Array<ArrayBuffer> } | undefined> = Promise.resolve(undefined)
  const link: NodeLink = {
    nodeId: 'one',
    tenantId: 't',
    pool: 'p',
    backends: [],
    slots: 1,
    draining: false,
    restingUntilMs: 0,
    wake: () => asked.push('wake'),
    read(what) {
      asked.push(what)
      return answer
    },
    drain: on => asked.push(`drain ${on}`),
    end: () => asked.push('end'),
    here: async () => true,
  }
  const app = new Hono().onError(answerErrors(silentLog()))
  const now = () => clock.now()
  const mounted = peerRoute({
    url: URL_A,
    box: peerEncryption(key(1)),
    links: { get: id => (id === 'one' ? link : undefined) },
    queued: () => asked.push('queued'),
    speaks: () => false,
    said: async () => ({ covered: true, again: false, events: [] }),
    now,
    maxBytes: 10_000,
  })
  app.route('/', mounted)
  const outcomes: unknown[] = []
  const other = peerClient({
    own: { url: 'http://b.internal:8080', fetch: async request => app.fetch(request) },
    box: peerEncryption(askedWith),
    now,
    readMs: 5000,
    log: silentLog(),
    asks: { add: (_, labels) => void outcomes.push(labels?.outcome) },
  })
  const send = (bytes: Uint8Array<ArrayBuffer>) =>
    app.fetch(new Request(URL_A + PEER_PATH, { method: 'POST', body: bytes }))
  return {
    clock,
    asked,
    other,
    outcomes,
    send,
    answers(found: typeof answer) {
      answer = found
    },
  }
}

/** One that asks whichever peer answers. */
const asking = (fetch: (request: Request) => Promise<Response>, readMs = 5000) =>
  peerClient({
    own: { url: 'http://b.internal:8080', fetch },
    box: peerEncryption(key(1)),
    now: () => new Date(),
    readMs,
    log: silentLog(),
    asks: { add: () => undefined },
  })

it('passes a question to the node that is here, and its answer back', async () => {
  const { other, asked, answers, outcomes } = fixture()
  answers(Promise.resolve({ status: 404, body: utf8('{"no":1}') }))
  const answer = await other.ask(URL_A, read, utf8('box'))
  expect([answer?.status, new TextDecoder().decode(answer?.body)]).toEqual([404, '{"no":1}'])
  expect(asked).toEqual([{ kind: 'events', id: 'r', from: 3, limit: 7, box: utf8('box') }])
  for (const what of [
    { ask: 'wake', nodeId: 'one' },
    { ask: 'drain', nodeId: 'one', on: true },
    { ask: 'end', nodeId: 'one' },
    { ask: 'here', nodeId: 'one' },
    { ask: 'queued' },
  ] satisfies PeerCommand[]) {
    expect(await other.ask(URL_A, what)).toBeDefined()
  }
  expect(asked.slice(1)).toEqual(['wake', 'drain true', 'end', 'queued'])
  expect(new Set(outcomes)).toEqual(new Set(['answered']))
})

it('says that there is no answer, and asks nobody else', async () => {
  const { other, outcomes } = fixture()
  expect(await other.ask(URL_A, { ...read, nodeId: 'two' })).toBeUndefined()
  expect(await other.ask(URL_A, read)).toBeUndefined()
  expect(outcomes).toEqual(['absent', 'absent'])
})

it('waits for no answer longer than a node may take, and forgets a plane that is not there', async () => {
  const until = (request: Request) =>
    new Promise<Response>((_, reject) => request.signal.addEventListener('abort', () => reject(request.signal.reason)))
  expect(await asking(until, 50).ask(URL_A, read)).toBeUndefined()
  expect(await asking(() => new Promise(() => undefined), 50).ask(URL_A, read)).toBeUndefined()
  expect(await asking(() => Promise.reject(new TypeError('fetch failed'))).ask(URL_A, read)).toBeUndefined()
})

it('refuses another master key, in both directions', async () => {
  const { other, asked, outcomes } = fixture({ askedWith: key(2) })
  expect(await other.ask(URL_A, read)).toBeUndefined()
  expect([asked, outcomes]).toEqual([[], ['refused']])
  const fine = packed({ answered: true, status: 200 }, utf8('{}'))
  const stranger = await peerEncryption(key(2)).take((await peerEncryption(key(2)).ask(utf8(''))).bytes)
  const forgeries: Record<string, (request: Request) => Promise<Uint8Array<ArrayBuffer>>> = {
    'in clear': async () => fine,
    'sealed under another key': () => stranger.seal(fine),
    'the request itself': async request => new Uint8Array(await request.arrayBuffer()).slice(32),
    nothing: async () => new Uint8Array(),
  }
  for (const [name, forge] of Object.entries(forgeries)) {
    const answer = await asking(async request => new Response(await forge(request))).ask(URL_A, read)
    expect([name, answer]).toEqual([name, undefined])
  }
})

it('refuses what is late, early, repeated, for another one, or of no sense', async () => {
  const { clock, send, asked } = fixture()
  const box = peerEncryption(key(1))
  const made = async (head: object) => (await box.ask(packed(head, new Uint8Array()))).bytes
  const atMs = clock.now().getTime()
  const fine = await made({ atMs, to: URL_A, asked: read })
  expect((await send(fine)).status).toBe(200)
  const refused = {
    repeated: fine,
    late: await made({ atMs: atMs - PEER_SKEW_MS - 1, to: URL_A, asked: read }),
    early: await made({ atMs: atMs + PEER_SKEW_MS + 1, to: URL_A, asked: read }),
    'for another one': await made({ atMs, to: 'http://c.internal:8080', asked: read }),
    'another question': await made({ atMs, to: URL_A, asked: { ask: 'keys' } }),
    'more than a question': await made({ atMs, to: URL_A, asked: { ...read, forward: true } }),
    'no time': await made({ to: URL_A, asked: read }),
    'no head': (await box.ask(new Uint8Array([255, 255, 255, 255]))).bytes,
    nothing: (await box.ask(new Uint8Array())).bytes,
    short: new Uint8Array(47),
  }
  for (const [name, bytes] of Object.entries(refused)) {
    const answer = await send(bytes)
    expect([name, answer.status]).toEqual([name, 401])
    expect(await answer.json()).toEqual({
      code: 'unauthorized',
      error: 'only control planes of this installation may call this',
    })
  }
  expect((await send(new Uint8Array(10_001))).status).toBe(413)
  clock.advance(2 * PEER_SKEW_MS + 1)
  expect((await send(fine)).status).toBe(401)
  expect(asked).toHaveLength(1)
})

it('opens an answer with the request that it answers, and no other', async () => {
  const box = peerEncryption(key(1))
  const [first, second] = [await box.ask(utf8('one')), await box.ask(utf8('two'))]
  const reply = await (await box.take(first.bytes)).seal(utf8('answer'))
  expect(new TextDecoder().decode(await first.open(reply))).toBe('answer')
  await expect(second.open(reply)).rejects.toThrow('does not open')
  expect(unpacked(packed({ a: 1 }, utf8('body')))).toEqual({ head: { a: 1 }, body: utf8('body') })
})
