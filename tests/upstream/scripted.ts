import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** What the far end saw of one call. */
export interface Seen {
  method: string
  url: string
  rawHeaders: string[]
  body: Buffer
  /** Resolves when the caller has cut the connection before the answer was whole. */
  aborted: Promise<void>
}

/** Answers one call; the body has been read. */
export type Script = (response: ServerResponse, seen: Seen, request: IncomingMessage) => void | Promise<void>

export interface ScriptedUpstream {
  origin: string
  seen: Seen[]
  /** The next calls are answered by these, in order; afterwards by the default. */
  queue(...scripts: Script[]): void
  /** Answers every call that the queue does not. */
  always(script: Script): void
  /** Stands in front of what answers every call that the queue does not. */
  wrap(by: (script: Script) => Script): void
  /** Connections that are open now. */
  sockets(): number
  close(): Promise<void>
}

/** The far end of the internet: a real HTTP server on loopback that does exactly what a test tells it. */
export async function scriptedUpstream(): Promise<ScriptedUpstream> {
  const seen: Seen[] = []
  const queued: Script[] = []
  let fallback: Script = (response, { url }) => {
    response.writeHead(500, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: `no script for ${url}` } }))
  }
  const sockets = new Set<Socket>()
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      return
    }
    const aborted = new Promise<void>(resolve => {
      response.on('close', () => {
        if (!response.writableFinished) resolve()
      })
    })
    const one: Seen = {
      method: request.method ?? '',
      url: request.url ?? '',
      rawHeaders: request.rawHeaders,
      body: Buffer.concat(chunks),
      aborted,
    }
    seen.push(one)
    await (queued.shift() ?? fallback)(response, one, request)
  })
  server.on('connection', socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    queue: (...scripts) => void queued.push(...scripts),
    always(script) {
      fallback = script
    },
    wrap(by) {
      fallback = by(fallback)
    },
    sockets: () => sockets.size,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A whole answer with its length. */
export function answer(
  status: number,
  body: string | Uint8Array,
  headers: Record<string, string | string[]> = {},
): Script {
  return response => {
    response.writeHead(status, {
      'content-type': 'application/json',
      ...headers,
      'content-length': Buffer.byteLength(body),
    })
    response.end(body)
  }
}

/** A stream, one write for each piece. */
export function stream(pieces: readonly (string | Uint8Array)[], headers: Record<string, string> = {}): Script {
  return response => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...headers })
    for (const piece of pieces) response.write(piece)
    response.end()
  }
}

/** A stream whose next piece is sent only when the test says so. */
export function steppedStream() {
  const opened = Promise.withResolvers<ServerResponse>()
  const script: Script = response => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    opened.resolve(response)
  }
  return {
    script,
    async send(piece: string): Promise<void> {
      ;(await opened.promise).write(piece)
    },
    async end(): Promise<void> {
      ;(await opened.promise).end()
    },
    async reset(): Promise<void> {
      ;(await opened.promise).destroy()
    },
  }
}

/** Takes the call and cuts the connection without a byte. */
export const reset: Script = response => void response.destroy()

/** Takes the call and says nothing. */
export const silence: Script = () => undefined
