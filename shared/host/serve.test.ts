import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { expectWithin } from '../../tests/crowding.ts'
import { eventually } from '../../tests/eventually.ts'
import { type SseEvent, sseResponse } from '../http/sse-write.ts'
import { type Listening, listen } from './serve.ts'

const open: Listening[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close(50)
})

async function serving(
  answer: () => Response | Promise<Response>,
  more: { stalledMs?: number } = {},
): Promise<{ origin: string; socket: () => Promise<Socket> }> {
  const bind = { host: '127.0.0.1', port: 0 }
  const listening = await listen({ bind, fetch: async () => answer(), bodyMs: 60_000, ...more })
  open.push(listening)
  return {
    origin: listening.origin,
    async socket() {
      const socket = connect(Number(new URL(listening.origin).port), '127.0.0.1')
      await once(socket, 'connect')
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
      return socket
    },
  }
}

it('writes the events of a stream to the socket as they come, with the headers of the answer, and ends it', async () => {
  const go = Promise.withResolvers<void>()
  async function* source(): AsyncIterable<SseEvent> {
    yield { event: 'a', data: 'é', id: 1 }
    await go.promise
    yield { event: 'b', data: 2, id: 2 }
  }
  const { origin } = await serving(() => {
    const answer = sseResponse(source, { heartbeatMs: 15_000, retryMs: 1500 })
    // As a middleware does that sets a header of its own.
    return new Response(answer.body, { status: answer.status, headers: [...answer.headers, ['x-request-id', 'r1']] })
  })
  const answer = await fetch(origin)
  expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(answer.headers.get('x-request-id')).toBe('r1')
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('event: a')) text += (await reader.read()).value
  go.resolve()
  for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value
  expect(text).toBe('retry: 1500\n\nid: 1\nevent: a\ndata: "é"\n\nid: 2\nevent: b\ndata: 2\n\n')
})

it('tells the source when the client is gone', async () => {
  const told = Promise.withResolvers<void>()
  async function* source(gone: AbortSignal): AsyncIterable<SseEvent> {
    yield { event: 'a', data: 1 }
    await new Promise<void>(resolve => gone.addEventListener('abort', () => resolve()))
    told.resolve()
  }
  const { socket } = await serving(() => sseResponse(source, { heartbeatMs: 15_000 }))
  const client = await socket()
  await once(client, 'data')
  client.destroy()
  await told.promise
})

it('stops asking the source while a client does not read, and cuts one that stays behind', async () => {
  let produced = 0
  async function* source(): AsyncIterable<SseEvent> {
    for (;;) {
      produced++
      yield { event: 'a', data: 'x'.repeat(100_000) }
    }
  }
  const { socket } = await serving(() => sseResponse(source, { heartbeatMs: 15_000, patienceMs: 2000 }))
  const client = await socket()
  client.pause()
  // On a busy machine the buffers take a while to fill.
  let held = -1
  while (produced !== held && produced < 1000) {
    held = produced
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  // What the kernel's buffers take, and a megabyte of the server's.
  expectWithin(held, 200)
  expect([produced, produced > 0]).toEqual([held, true])
  client.resume()
  let taken = 0
  client.on('data', piece => {
    taken += piece.length
  })
  await expect.poll(() => taken, { timeout: 20_000 }).toBeGreaterThan(20_000_000)
  client.pause()
  client.on('error', () => undefined)
  await expect.poll(() => produced, { timeout: 20_000 }).toBeGreaterThan(held)
  await new Promise(resolve => setTimeout(resolve, 2300))
  client.resume()
  await once(client, 'close')
})

it('ends the connection of a caller that takes nothing of its answer, and waits as long as it likes for its own', async () => {
  const { socket } = await serving(() => new Response('x'.repeat(20_000_000)), { stalledMs: 300 })
  const stalled = await socket()
  stalled.on('error', () => undefined)
  stalled.pause()
  await new Promise(resolve => setTimeout(resolve, 1500))
  let taken = 0
  stalled.on('data', piece => (taken += piece.length)).resume()
  await once(stalled, 'close', { signal: AbortSignal.timeout(10_000) })
  expect(taken).toBeLessThan(20_000_000)

  const later = await serving(() => new Promise(resolve => setTimeout(resolve, 1000, new Response('late'))), {
    stalledMs: 300,
  })
  expect(await (await fetch(later.origin)).text()).toBe('late')
})

it('ends the connection of a stream that ends while the service leaves, though its head promised another answer', async () => {
  const go = Promise.withResolvers<void>()
  async function* source(): AsyncIterable<SseEvent> {
    yield { event: 'a', data: 1, id: 1 }
    await go.promise
  }
  const { socket } = await serving(() => sseResponse(source, { heartbeatMs: 15_000 }))
  const client = await socket()
  let text = ''
  client.on('data', piece => (text += String(piece)))
  await eventually(() => expect(text).toContain('event: a'))
  expect(text).toMatch(/connection: keep-alive/i)
  open.at(-1)!.drain()
  const ended = once(client, 'end')
  go.resolve()
  await ended
})

it('waits for no connection that was opened and never used', async () => {
  const { origin } = await serving(() => new Response('ok'))
  const unused = connect(Number(new URL(origin).port), '127.0.0.1')
  unused.on('error', () => undefined).resume()
  await once(unused, 'connect')
  expect(await (await fetch(origin)).text()).toBe('ok')
  const began = performance.now()
  await open.pop()!.close(20_000)
  expectWithin(performance.now() - began, 5000)
  unused.destroy()
})

it('answers what the parser of HTTP refuses in words, and writes into no answer that has started', async () => {
  const go = Promise.withResolvers<void>()
  async function* source(): AsyncIterable<SseEvent> {
    yield { event: 'a', data: 1 }
    await go.promise
  }
  const { origin, socket } = await serving(() => sseResponse(source, { heartbeatMs: 15_000, retryMs: 1500 }))
  for (const [bytes, status] of [
    [`GET / HTTP/1.1\r\nhost: x\r\nx-a: ${'b'.repeat(100_000)}\r\n\r\n`, '431'],
    ['GET / HTTP/1.1\r\nhost : x\r\n\r\n', '400'],
    ['GET / HTTP/1.1\r\nhost: x\r\nHost: y\r\n\r\n', '400'],
  ] as const) {
    const client = connect(Number(new URL(origin).port), '127.0.0.1')
    let said = ''
    client.on('data', chunk => (said += chunk))
    client.on('error', () => undefined)
    client.write(bytes)
    await once(client, 'close')
    expect(said).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    const [head = '', body = ''] = said.split('\r\n\r\n')
    expect(head).toContain(`content-length: ${body.length}`)
    expect(JSON.parse(body)).toMatchObject({ error: expect.stringMatching(/^the /) })
  }
  const client = await socket()
  let said = ''
  client.on('data', chunk => (said += chunk))
  await eventually(() => expect(said).toContain('event: a'))
  client.write('no HTTP\r\n\r\n')
  await once(client, 'close')
  expect(said).not.toContain('400')
  go.resolve()
})

it('answers HTTP/1.0 without a Host, as balancers ask for health', async () => {
  const fetch = ({ url }: Request) => new Response(new URL(url).pathname)
  const server = await listen({ bind: { host: '127.0.0.1', port: 0 }, bodyMs: 10_000, fetch })
  const socket = connect(Number(new URL(server.origin).port), '127.0.0.1')
  let said = ''
  socket.on('data', piece => (said += String(piece)))
  socket.write('GET /readyz HTTP/1.0\r\n\r\n')
  await once(socket, 'close')
  expect(said).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n\/readyz$/)
  await server.close(0)
})

it('lets a caller that is still sending read the answer which ends its connection', async () => {
  const refuse = async ({ body }: Request) => {
    await body?.getReader().read()
    return new Response('too large', { status: 413, headers: { connection: 'close' } })
  }
  const server = await listen({ bind: { host: '127.0.0.1', port: 0 }, bodyMs: 10_000, fetch: refuse })
  const size = 20_000_000
  for (let n = 0; n < 5; n++) {
    const socket = connect(Number(new URL(server.origin).port), '127.0.0.1')
    let [said, wrong] = ['', '']
    socket.on('data', piece => (said += String(piece))).on('error', ({ message }) => (wrong = message))
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${size}\r\n\r\n`)
    // A pipelined request after the one that was refused is not looked at.
    socket.end(`${'x'.repeat(size)}POST /next HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n`)
    await once(socket, 'close')
    expect(wrong).toBe('')
    expect(said.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 413'])
    expect(said).toMatch(/too large$/)
  }
  await server.close(1000)
})

it('answers the requests of one connection after each other, and those of others in between', async () => {
  let [now, most, count] = [0, 0, 0]
  const { origin } = await serving(async () => {
    most = Math.max(most, ++now)
    await Promise.resolve()
    now--
    return new Response(`${++count}`)
  })
  const socket = connect(Number(new URL(origin).port), '127.0.0.1')
  let said = ''
  socket.on('data', piece => (said += String(piece)))
  const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'
  const BODY = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n'
  socket.write(REQUEST.repeat(90) + BODY)
  await eventually(() => count > 0)
  const other = Number(await (await fetch(origin)).text())
  socket.write(`hello${REQUEST}`)
  const bodies = () => said.match(/(?<=\r\n\r\n)\d+/g) ?? []
  await eventually(() => bodies().length === 92)
  expect([most, other < 91]).toEqual([1, true])
  expect(bodies().map(Number)).toEqual(
    bodies()
      .map(Number)
      .toSorted((a, b) => a - b),
  )
  socket.destroy()
})

it('ends a connection on which hundreds of requests wait for their answers', async () => {
  let count = 0
  const { origin } = await serving(async () => {
    count++
    return new Promise(() => undefined)
  })
  const socket = connect(Number(new URL(origin).port), '127.0.0.1')
  socket.on('error', () => undefined).resume()
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(300))
  await once(socket, 'close')
  expect(count).toBe(1)
})
