import { createServer, type Socket } from 'node:net'

/** What the far end says on a path, as bytes; it may take its time, and may go on for ever. */
export type Says = (socket: Socket, request: string) => void

/** A server that an attacker owns: bytes in, bytes out, no HTTP library in between. */
export interface RemoteRunEnd {
  origin: string
  /** Every first line that came in, with what followed it on the same connection. */
  readonly heard: string[]
  /** From now on; the longest beginning of a path decides. */
  say(path: string, says: Says | string | Buffer): void
  close(): Promise<void>
}

export const answered = (body: string | Buffer, type = 'application/json'): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

/** A chat completion that says this. */
export const completion = (message: object, more: object = {}): string =>
  answered(
    JSON.stringify({
      id: 'c1',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'ok', ...message } }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      ...more,
    }),
  )

export async function remoteRunEnd(): Promise<RemoteRunEnd> {
  const heard: string[] = []
  const sayings = new Map<string, Says>()
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined)
    let text = ''
    let place = -1
    socket.on('data', piece => {
      text += piece.toString('latin1')
      if (place < 0) place = heard.push('') - 1
      heard[place] = text
      for (;;) {
        const head = text.indexOf('\r\n\r\n')
        if (head < 0) return
        const length = Number(/^content-length: *(\d+)/im.exec(text.slice(0, head))?.[1] ?? 0)
        const chunked = /^transfer-encoding: *chunked/im.test(text.slice(0, head))
        const end = chunked ? text.indexOf('0\r\n\r\n', head + 2) + 5 : head + 4 + length
        if (end < head + 4 || text.length < end) return
        const request = text.slice(0, end)
        text = text.slice(end)
        place = -1
        if (text !== '') place = heard.push(text) - 1
        const path = request.split(' ')[1] ?? ''
        const [longest] = [...sayings.keys()]
          .filter(one => path.startsWith(one))
          .toSorted((a, b) => b.length - a.length)
        sayings.get(longest ?? '')?.(socket, request)
      }
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const say: RemoteRunEnd['say'] = (path, says) =>
    void sayings.set(path, typeof says === 'function' ? says : socket => void socket.write(says))
  say('', completion({}))
  return {
    origin: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    heard,
    say,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
