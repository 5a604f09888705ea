import { readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import { type Socket, Server as SocketServer } from 'node:net'
import { totalmem } from 'node:os'
import { getRequestListener } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { EnvError } from '../env/read-env.ts'
import { type Bind, toOrigin } from '../http/bind.ts'
import { feedOf } from '../http/sse-write.ts'
import type { HostFacts } from '../metrics/metrics.ts'
import { sharePageTurns } from '../time/sleep.ts'

/** The connection that a request came by. */
export interface Caller {
  socket: { remoteAddress?: string | undefined }
}

export interface RenderOptions {
  bind: Bind
  fetch: (request: Request, caller: Caller) => Response | Promise<Response>
  /**
   * Looks at a request first and may take it without a Request or Response object being built; answers false to leave
   * it to `fetch`.
   */
  direct?: (request: IncomingMessage, response: ServerResponse) => boolean
  /** How long a caller may take to send its whole body. */
  bodyMs: number
  /** How long a caller may take nothing of an answer that is there for it. */
  stalledMs?: number
  maxHeaderBytes?: number
  /** Hands over connections that another process accepts for `bind`, as its origin says; nothing listens here then. */
  accepted?: { origin: string; each: (take: (socket: Socket) => void) => void }
}

export interface Listening {
  /** Where it listens, with the port that was given when 0 was asked for. */
  origin: string
  /** From now on each answer ends its connection, so that its caller comes back to another instance. */
  drain(): void
  /**
   * Stops accepting, lets open requests finish, and cuts what is left after `drainMs`. Idle connections stay for `graceMs` more: a call that
   * is on its way over one of them is answered, and ends it.
   */
  close(drainMs: number, graceMs?: number): Promise<void>
}

/** A whole service in this process: its socket, its work and its store. */
export interface Service {
  origin: string
  close(): Promise<void>
}

/** The address cannot be used. The message is one sentence for the person at the terminal. */
export class ListenError extends Error {
  override name = 'ListenError'
}

/** With fewer a service does not start, or cannot answer its second caller. */
const LEAST_FILES = 64

/** Ends a start in words where its process may open too few files; else what fails first says so in its own, or ends in silence. */
export function refuseLowLimits(): void {
  let limits: string
  try {
    limits = readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return
  }
  const files = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? LEAST_FILES)
  if (files >= LEAST_FILES) return
  throw new EnvError(
    `this process may open ${files} files at a time, and a service needs ${LEAST_FILES} and one for each connection: raise the limit (ulimit -n 65536, LimitNOFILE= of systemd, --ulimit nofile= of Docker)`,
  )
}

/** After so long a connection that brought nothing is not waited for. */
const UNUSED_MS = 1000
/** Once more where a little of the answer still left in the first one. */
const STALLED_MS = 60_000

/** Answers that are on their way, by their requests. */
const answers = new WeakMap<Request, { destroy(): void }>()

/** Ends the connection of a request that `listen` has handed out, so that its caller sees an answer that was cut. */
export function cutConnection(request: Request): void {
  answers.get(request)?.destroy()
}

type Responses = WeakMap<Socket, ServerResponse>

/** Serves a fetch handler on a Node socket. */
export async function listen(options: RenderOptions): Promise<Listening> {
  sharePageTurns()
  const { bind, fetch, direct, bodyMs, stalledMs = STALLED_MS, maxHeaderBytes, accepted } = options
  const viaFetch = getRequestListener(
    (request, { incoming, outgoing }) => {
      answers.set(request, outgoing)
      const send = (response: Response) =>
        outgoing instanceof ServerResponse && takesFeed(response, outgoing, () => draining)
          ? RESPONSE_ALREADY_SENT
          : response
      const answer = fetch(request, incoming)
      return answer instanceof Promise ? answer.then(send) : send(answer)
    },
    // The name where none is sent: HTTP/1.0 needs no Host, and balancers ask for health so.
    { overrideGlobalObjects: false, hostname: 'localhost' },
  )
  let draining = false
  /** The latest of each connection. */
  const responses: Responses = new WeakMap()
  /** Answers that are on their way, where others may go on at the address after this one. */
  const open = accepted && new Set<ServerResponse>()
  const server = createServer(
    {
      ServerResponse: BytesInHead,
      headersTimeout: 10_000,
      requestTimeout: bodyMs,
      keepAliveTimeout: 65_000,
      ...(maxHeaderBytes !== undefined && { maxHeaderSize: maxHeaderBytes }),
    },
    oneByOne(responses, (request, response) => {
      if (draining) response.shouldKeepAlive = false
      if (open) {
        open.add(response)
        response.once('close', () => open.delete(response))
      }
      if (hosts(request) > 1) return refuseHosts(response)
      if (!direct?.(request, response)) void viaFetch(request, response)
    }),
  )
  server.on('clientError', (error, socket) => refuseUnreadable(error, socket as Socket, responses))
  server.setTimeout(stalledMs, socket => endStalled(socket, responses))
  /** With the time at which each came. */
  const sockets = new Map<Socket, number>()
  let left: () => void = () => undefined
  server.on('connection', socket => {
    lingers(socket, () => responses.get(socket)?.req)
    sockets.set(socket, performance.now())
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0) left()
    })
  })
  if (accepted) acceptElsewhere(server, accepted.each)
  const origin = accepted?.origin ?? (await listenAt(server, bind))

  /**
   * Resolves when nothing is accepted any more and no connection is left. The server of HTTP is closed a little before its connections say
   * so, and a call that was cut has to learn of it from its own.
   */
  async function closed(keepsIdle: boolean): Promise<void> {
    const none = new Promise<void>(resolve => {
      left = resolve
      if (sockets.size === 0) resolve()
    })
    // The server of HTTP closes idle connections before it closes.
    if (!accepted) {
      if (keepsIdle) SocketServer.prototype.close.call(server)
      else server.close()
    }
    return none
  }

  return {
    origin,
    drain() {
      draining = true
    },
    async close(drainMs, graceMs = 0) {
      draining = true
      const ended = closed(graceMs > 0)
      let idleFrom = performance.now() + graceMs
      for (const response of open ?? []) {
        // Its head sends the caller to another connection; where the head is out, the caller's next call does, for which there is time.
        if (!response.headersSent) response.shouldKeepAlive = false
        else response.once('close', () => (idleFrom = performance.now() + graceMs))
      }
      const closeIdle = () => {
        const now = performance.now()
        if (now < idleFrom) return
        server.closeIdleConnections()
        // The server of HTTP waits for the first request of a connection, and browsers open some to be ready.
        for (const [socket, since] of sockets) if (socket.bytesRead === 0 && now - since > UNUSED_MS) socket.destroy()
      }
      closeIdle()
      // A connection that finishes its request while we drain would otherwise be kept for the next one.
      const idle = setInterval(closeIdle, 50)
      const cut = setTimeout(() => {
        for (const socket of sockets.keys()) socket.destroy()
      }, drainMs)
      await ended
      clearTimeout(cut)
      clearInterval(idle)
    },
  }
}

/** Requests that a caller sends on one connection before it has the answers to those before them. */
const MOST_AHEAD = 100

/**
 * Answers the requests of a connection one after another, and those of others in between: thousands that are sent at once hold up no other caller,
 * and what is not answered yet is not read.
 */
function oneByOne(responses: Responses, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const ahead = new WeakMap<Socket, number>()
  return (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request
    const before = responses.get(socket)
    responses.set(socket, response)
    if (before === undefined || before.writableFinished || before.destroyed) {
      answer(request, response)
      return
    }
    const waiting = (ahead.get(socket) ?? 0) + 1
    if (waiting > MOST_AHEAD) {
      socket.destroy()
      return
    }
    ahead.set(socket, waiting)
    socket.pause()
    const start = () => {
      ahead.set(socket, (ahead.get(socket) ?? 1) - 1)
      if (socket.destroyed) return
      if (responses.get(socket) === response) socket.resume()
      answer(request, response)
    }
    before.once('close', () => setImmediate(start))
  }
}

/** So much and so long a caller may go on sending after the answer that ended its connection. */
const LINGER_MS = 2000
const LINGER_BYTES = 64 * 1024 * 1024

/**
 * A connection that is closed while its caller still sends is reset, and the answer may be lost on the way (RFC 9112, section 9.6). So the answer is
 * followed by the end of this side, and what still comes is thrown away.
 */
function lingers(socket: Socket, latest: () => IncomingMessage | undefined): void {
  const endNow = socket.destroySoon.bind(socket)
  socket.destroySoon = () => {
    if (latest()?.complete !== false) return endNow()
    const end = () => socket.destroy()
    const cut = setTimeout(end, LINGER_MS)
    let bytes = 0
    // The parser of HTTP lets go of a socket that is read by others.
    socket.on('data', () => undefined).removeAllListeners('data')
    socket.on('data', ({ byteLength }) => {
      bytes += byteLength
      if (bytes > LINGER_BYTES) end()
    })
    socket.once('end', end).once('close', () => clearTimeout(cut))
    socket.end()
    socket.resume()
  }
}

function hosts({ rawHeaders }: IncomingMessage): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count
}

/** RFC 9112, section 3.2: of two names it is not known which one was meant. */
function refuseHosts(response: ServerResponse): void {
  const body = JSON.stringify({ error: 'the request has more than one Host', code: 'validation_failed' })
  response.writeHead(400, {
    connection: 'close',
    'content-type': 'application/json',
    'content-length': body.length,
  })
  response.end(body)
}

/** What the parser of HTTP refuses, by its reasons; everything else is a bad request. */
const UNREADABLE: Readonly<Record<string, readonly [status: string, words: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the headers of the request are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['413 Content Too Large', 'the chunk extensions of the request are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request did not come in time'],
}

/** As Node answers by itself, with words. It writes into no answer that has started or waits for its turn, and neither does this. */
function refuseUnreadable({ code = '' }: NodeJS.ErrnoException, socket: Socket, responses: Responses): void {
  const latest = responses.get(socket)
  const isBetween = latest === undefined || latest.writableFinished
  if (socket.writable && (isBetween || (latest.socket !== null && !latest.headersSent))) {
    const [status, error] = UNREADABLE[code] ?? ['400 Bad Request', 'the request is not HTTP that can be read']
    const body = JSON.stringify({ error, code: 'validation_failed' })
    const head = `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
    socket.write(`${head}\r\n\r\n${body}`)
  }
  socket.destroySoon()
}

const NOTHING = Buffer.alloc(0)

/** Node sends a head that goes out before its body as UTF-8; the characters of a header are bytes. */
class BytesInHead extends ServerResponse {
  override flushHeaders(): void {
    const bodiless = this.req.method === 'HEAD' || this.statusCode === 204 || this.statusCode === 304
    if (bodiless) super.flushHeaders()
    else this.write(NOTHING)
  }
}

/** Event streams are written to the socket by their source. */
function takesFeed(response: Response, outgoing: ServerResponse, isLeaving: () => boolean): boolean {
  const open = feedOf(response)
  if (open === undefined) return false
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  outgoing.flushHeaders()
  const reader = open({
    write: frame => void outgoing.write(frame),
    backlog: () => outgoing.writableLength,
    close() {
      // Its head may have been sent before, and promised its reader another answer.
      const { socket } = outgoing
      if (isLeaving()) outgoing.once('finish', () => socket?.end())
      outgoing.end()
    },
    fail: () => void outgoing.destroy(),
  })
  outgoing.on('drain', reader.taken).on('close', reader.gone)
  return true
}

/** Each connection that another process accepted is one of this server's; it limits and counts them as its own. */
function acceptElsewhere(server: Server, each: (take: (socket: Socket) => void) => void): void {
  server.emit('listening')
  each(socket => {
    socket.allowHalfOpen = true
    server.emit('connection', socket)
  })
}

/** Listens, and gives the origin with the port that was given when 0 was asked for. */
export async function listenAt(server: SocketServer, { host, port }: Bind): Promise<string> {
  // `localhost` may resolve to ::1 alone; the documented address is 127.0.0.1, so that is what it means here.
  const address = host === 'localhost' ? '127.0.0.1' : host
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, address, () => {
      server.off('error', reject)
      resolve()
    })
  }).catch((cause: NodeJS.ErrnoException) => {
    throw new ListenError(`cannot listen on ${host}:${port}: ${why(cause)}`, { cause })
  })
  const at = server.address()
  return toOrigin({ host, port: typeof at === 'object' && at !== null ? at.port : port })
}

function why({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'EADDRINUSE') return 'another program uses this port; stop it or choose another port'
  if (code === 'EACCES') return 'this account may not use that port; choose one above 1023'
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return 'this machine does not have that address; choose 127.0.0.1 or [::1], one of its own, or 0.0.0.0 or [::] for all'
  return message
}

/**
 * A connection on which nothing moved. One whose answer is still being made waits for us; one that takes nothing of its answer would keep
 * its place among the requests in flight for as long as its caller likes, and one without a request is as old as an idle one may be.
 */
function endStalled(socket: Socket, responses: Responses): void {
  if (responses.get(socket)?.writableFinished !== false || socket.writableLength > 0) socket.destroy()
}

/** The bytes of memory that this process may take: its container's, or the machine's. */
export function memoryLimit(): number {
  return Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem())
}

/** What requests and answers may hold together: an eighth of the memory, since each is held two to five times for a moment. */
export function usualHeldBytes(): number {
  return Math.max(64 * 1024 * 1024, memoryLimit() / 8)
}

/** Of this process, and of the disk that holds a folder. */
export function hostFacts(folder: string | undefined): HostFacts {
  return {
    startedMs: performance.timeOrigin,
    residentBytes: () => process.memoryUsage.rss(),
    freeBytes:
      folder === undefined
        ? undefined
        : async () => {
            const { bavail, bsize } = await statfs(folder)
            return bavail * bsize
          },
  }
}
