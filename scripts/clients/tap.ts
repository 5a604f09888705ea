import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Tap {
  origin: string
  /** What the program sent, call by call. */
  bodies: readonly Buffer[]
  close(): Promise<void>
}

/** Stands between a program and its base address, and keeps what the program sent. */
export async function tapped(origin: string): Promise<Tap> {
  const bodies: Buffer[] = []
  const shouldUpgradeCallback = ({ headers }: IncomingMessage) => headers.upgrade === 'websocket'
  const server = createServer({ shouldUpgradeCallback }, async (asked, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of asked) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    if (body.length > 0) bodies.push(body)
    const onward = request(new URL(asked.url ?? '/', origin), { method: asked.method, headers: asked.headers }, got => {
      response.writeHead(got.statusCode ?? 502, got.headers)
      got.pipe(response)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    onward.end(body)
  })
  // An upgrade is refused by what stands behind; here it goes on as the plain request that a program makes next.
  server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
