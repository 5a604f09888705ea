import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'

export interface ForwardProxy {
  origin: string
  /** First lines of what was asked, with the credentials that came. */
  asked: string[]
  close(): Promise<void>
}

interface Ways {
  /** Undefined: let out. A status: refused with it. `hang`: no answer. `cut`: let out, and broken off. */
  answer?: (line: string, request: IncomingMessage) => number | 'hang' | 'cut' | undefined
  /** Values of `proxy-authenticate` of a refusal. */
  challenges?: string[]
  /** Where a name leads, as the proxy's own name server says. */
  port: number
}

/** A forward proxy to ports of this machine: CONNECT, and plain http with whole addresses. Every name leads to loopback. */
export async function forwardProxy({ answer = () => undefined, challenges = [], port }: Ways): Promise<ForwardProxy> {
  const asked: string[] = []
  const open = new Set<Socket>()
  const note = (request: IncomingMessage) => {
    const line = `${request.method} ${request.url}`
    const login = request.headers['proxy-authorization']
    asked.push(login === undefined ? line : `${line} ${login}`)
    return answer(line, request)
  }
  const server = createServer((request, response) => {
    const how = note(request)
    if (how === 'hang') return
    if (typeof how === 'number')
      return void response.writeHead(how, { 'proxy-authenticate': challenges }).end('refused')
    const url = new URL(request.url!)
    const { 'proxy-authorization': _, ...headers } = request.headers
    const out = httpRequest(
      { host: '127.0.0.1', port, method: request.method, path: url.pathname + url.search, headers, agent: false },
      got => {
        response.writeHead(got.statusCode!, got.headers)
        got.pipe(response)
      },
    )
    out.on('error', () => response.destroy())
    request.pipe(out)
  })
  server.on('connection', socket => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  server.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => undefined)
    const how = note(request)
    if (how === 'hang') return
    const asks = challenges.map(value => `proxy-authenticate: ${value}\r\n`).join('')
    if (typeof how === 'number') return void socket.end(`HTTP/1.1 ${how} No\r\n${asks}content-length: 2\r\n\r\nno`)
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
    if (how === 'cut') return void socket.destroySoon()
    const out = connect(port, '127.0.0.1')
    out.on('error', () => socket.destroy())
    out.on('close', () => socket.destroy())
    socket.on('close', () => out.destroy())
    out.write(head)
    socket.pipe(out).pipe(socket)
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async close() {
      for (const socket of open) socket.destroy()
      await new Promise(done => server.close(done))
    },
  }
}
