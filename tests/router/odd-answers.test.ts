import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ServedRouter, servedRouter } from './served-routers.ts'

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'

/** An upstream of bytes: what it hears as it stands on the wire, and what it answers likewise. */
let server: Server
let heard: string
let says: readonly (string | Buffer)[]
const routers: Record<string, ServedRouter> = {}

beforeAll(async () => {
  server = createServer(socket => {
    socket.on('data', data => {
      heard += data.toString('latin1')
      if (heard.includes('\r\n\r\n')) void say(socket)
    })
    socket.on('error', () => undefined)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as { port: number }).port}/tenant`
  const env = { ROUTER_UPSTREAM_MESSAGES: origin, ROUTER_UPSTREAM_CHAT: origin }
  routers['on sockets'] = await servedRouter({ env, direct: true })
  routers['through the portable app'] = await servedRouter({ env, direct: false })
})
afterAll(async () => {
  for (const router of Object.values(routers)) await router.stop()
  server.close()
})

async function say(socket: Socket): Promise<void> {
  for (const piece of says) {
    socket.write(piece)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

/** What comes back for a request that is written out byte for byte, until the router closes. */
function exchange(router: ServedRouter, head: string[], answer: string | Buffer | Buffer[] = OK): Promise<string> {
  heard = ''
  says = Array.isArray(answer) ? answer : [answer]
  const { port } = new URL(router.origin)
  return new Promise((resolve, reject) => {
    let got = ''
    const socket: Socket = connect(Number(port), '127.0.0.1', () =>
      socket.write([head[0], 'host: localhost', ...head.slice(1), 'connection: close', '', ''].join('\r\n'), 'latin1'),
    )
    socket.on('data', data => {
      got += data.toString('latin1')
    })
    socket.on('end', () => resolve(got)).on('error', reject)
    socket.setTimeout(20_000, () => reject(new Error(`no answer: ${got}`)))
  })
}

describe.each(['on sockets', 'through the portable app'])('a router %s', name => {
  it.each([
    '/v1/models/../../admin/secret',
    '/v1/models/%2e%2E/%2e%2E/secret',
    '/v1/models/..\\..\\secret',
    '/v1/messages/batches/../../../x',
  ])('leads nowhere by %s', async path => {
    expect(await exchange(routers[name]!, [`GET ${path} HTTP/1.1`])).toMatch(/^HTTP\/1.1 40[04] /)
    expect(heard).toBe('')
  })

  it('takes a step up that stays among the provider’s paths for what it leads to', async () => {
    expect(await exchange(routers[name]!, ['GET /v1/models/%2e%2E/batches HTTP/1.1'])).toMatch(/^HTTP\/1.1 200 /)
    expect(heard).toMatch(/^GET \/tenant\/v1\/batches HTTP/)
  })

  it('keeps to itself what any header Connection names', async () => {
    const head = [
      'GET /v1/models HTTP/1.1',
      'connection: x-one',
      'connection: x-two',
      'x-one: 1',
      'x-two: 2',
      'x-three: 3',
    ]
    const answer =
      'HTTP/1.1 200 OK\r\nconnection: x-four\r\nconnection: x-five\r\nx-four: 4\r\nx-five: 5\r\nx-six: 6\r\ncontent-length: 2\r\n\r\n{}'
    const got = await exchange(routers[name]!, head, answer)
    expect(heard).toMatch(/x-three: 3/i)
    expect(heard).not.toMatch(/x-one|x-two/i)
    expect(got).toMatch(/x-six: 6/i)
    expect(got).not.toMatch(/x-four|x-five/i)
  })

  it('passes the bytes of a header as they are', async () => {
    const answer = Buffer.from('HTTP/1.1 200 OK\r\nx-name: caf\xe9 \xc3\xa9\r\ncontent-length: 2\r\n\r\n{}', 'latin1')
    const got = await exchange(routers[name]!, ['GET /v1/models HTTP/1.1', 'x-name: na\xefve \xc3\xa9'], answer)
    expect(heard).toContain('na\xefve \xc3\xa9')
    expect(got).toContain('caf\xe9 \xc3\xa9')
    const { length } = answer
    const late = [answer.subarray(0, length - 2), answer.subarray(length - 2)]
    expect(await exchange(routers[name]!, ['GET /v1/models HTTP/1.1'], late)).toContain('caf\xe9 \xc3\xa9')
  })

  it('passes a 304 with the length of what was not sent', async () => {
    const answer = 'HTTP/1.1 304 Not Modified\r\netag: "a"\r\ncontent-length: 1234\r\n\r\n'
    const got = await exchange(routers[name]!, ['GET /v1/models HTTP/1.1', 'if-none-match: "a"'], answer)
    expect(got).toMatch(/^HTTP\/1.1 304 Not Modified\r\n/)
    expect(got).toContain('etag: "a"')
    expect(got.split('\r\n\r\n')[1]).toBe('')
    expect(routers[name]!.logs.at(-1)).toContain('"ended":"complete"')
  })
})
