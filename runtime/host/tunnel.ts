import { X509Certificate } from 'node:crypto'
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { Code, ConnectError, type ConnectRouter, createConnectRouter, type HandlerContext } from '@connectrpc/connect'
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node'
import { readOperatorFile } from '../../shared/host/operator-file.ts'
import { ListenError } from '../../shared/host/serve.ts'
import { type Bind, isLoopback } from '../../shared/http/bind.ts'
import { nextTurn } from '../../shared/time/sleep.ts'
import { NodeGateway as NodeGatewayService } from '../../shared/tunnel/gateway.gen.ts'
import { MOST_FRAME_BYTES, type RefusalCode, TunnelRefusal } from '../../shared/tunnel/protocol.ts'
import type { NodeGateway } from '../nodes/gateway/gateway.ts'
import type { TunnelEndpoint } from '../nodes/gateway/well-known-route.ts'

export interface TunnelOptions {
  gateway: NodeGateway
  bind: Bind
  /** Paths of PEM files. */
  tls?: { cert: string; key: string } | undefined
  /** Connections that another process accepts at this address; nothing listens here then. */
  accepted?: { port: number; each: (take: (socket: Socket) => void) => void } | undefined
  /** Plain text beyond this machine is the operator's decision. */
  insecure: boolean
}

export interface ListeningTunnel {
  at: TunnelEndpoint
  close(): Promise<void>
}

const CODES: Record<RefusalCode, Code> = {
  unauthenticated: Code.Unauthenticated,
  removed: Code.NotFound,
  unknown_protocol: Code.FailedPrecondition,
  out_of_order: Code.DataLoss,
  too_large: Code.ResourceExhausted,
  bad_frame: Code.InvalidArgument,
  replaced: Code.Aborted,
  not_ready: Code.Unavailable,
  closing: Code.Unavailable,
}

/** Of a call that anyone may make: as much memory is taken as its first bytes say that it has. */
const MOST_CALL_BYTES = 4 * 1024
/** A node sends a heartbeat more often than that. */
const IDLE_MS = 120_000
/** Of one connection; a proxy that carries more nodes opens another one. A node hardly ever resets a stream. */
const LIMITS = { settings: { maxConcurrentStreams: 100 }, streamResetBurst: 50, streamResetRate: 5 }
/** Of a message, after which the others that came with it are waited for. */
const SMALL_PIECE = 1024

/** Puts the node gateway on a socket: gRPC over HTTP/2, with TLS wherever it leaves this machine. */
export async function listenForNodes({
  gateway,
  bind,
  tls,
  accepted,
  insecure,
}: TunnelOptions): Promise<ListeningTunnel> {
  if (tls === undefined && !insecure && !isLoopback(bind.host)) {
    throw new ListenError(
      `The tunnel would listen on ${bind.host} in plain text. Set PLATFORM_TUNNEL_TLS_CERT and PLATFORM_TUNNEL_TLS_KEY, or PLATFORM_TUNNEL_INSECURE=1 where something else encrypts it.`,
    )
  }
  const pems = tls && { cert: await pem(tls.cert), key: await pem(tls.key) }
  const handler = handlerOf(gateway)
  const server: Http2Server | Http2SecureServer = pems
    ? createSecureServer({ ...LIMITS, ...pems }, handler)
    : createServer(LIMITS, handler)
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    session.on('error', () => session.destroy())
    session.setTimeout(IDLE_MS, () => session.destroy())
  })
  const host = bind.host === 'localhost' ? '127.0.0.1' : bind.host
  accepted?.each(socket => void server.emit('connection', socket))
  const port = accepted?.port ?? (await portOf(server, { host, port: bind.port }))
  const shown = host.includes(':') ? `[${host}]` : host
  return {
    at: {
      endpoint: `${pems ? 'https' : 'http'}://${shown}:${port}`,
      tlsFingerprint: pems ? fingerprintOf(pems.cert) : null,
    },
    async close() {
      await gateway.close()
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      for (const session of sessions) session.destroy()
      await closed
    },
  }
}

/** As the adapter of the library, which writes each stream that breaks off to the console: the gateway says what becomes of a node. */
function handlerOf(gateway: NodeGateway) {
  const router = createConnectRouter({
    acceptCompression: [compressionGzip, compressionBrotli],
    connect: false,
    grpcWeb: false,
    readMaxBytes: MOST_FRAME_BYTES,
    writeMaxBytes: 2 * MOST_FRAME_BYTES,
  })
  routesOf(gateway)(router)
  const handlers = new Map(router.handlers.map(one => [one.requestPath, one]))
  return (request: Http2ServerRequest, response: Http2ServerResponse): void => {
    gatherPieces(request)
    const one = handlers.get(request.url.split('?', 1)[0]!)
    if (!one) {
      response.writeHead(404)
      response.end()
      return
    }
    one(universalRequestFromNodeRequest(request, response, undefined, undefined))
      .then(answer => universalResponseToNodeResponse(answer, response))
      .catch(() => undefined)
  }
}

/** A frame of HTTP/2 may hold one byte, and the reader of messages adds up all pieces again with each: what came together is read together. */
function gatherPieces(request: Readable): void {
  const pieces = request[Symbol.asyncIterator].bind(request)
  request[Symbol.asyncIterator] = async function* () {
    for await (const piece of { [Symbol.asyncIterator]: pieces }) {
      yield piece
      if ((piece as Uint8Array).length < SMALL_PIECE) await new Promise<void>(nextTurn)
    }
    return undefined
  }
}

/** Listens, and answers with the port that was given when 0 was asked for. */
async function portOf(server: Http2Server | Http2SecureServer, { host, port }: Bind): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', cause => {
      const reason = cause instanceof Error ? cause.message : String(cause)
      reject(new ListenError(`The tunnel cannot listen on ${host}:${port}: ${reason}`, { cause }))
    })
    server.listen(port, host, () => resolve())
  })
  return (server.address() as AddressInfo).port
}

function routesOf(gateway: NodeGateway) {
  const { enrol, refresh, connect } = NodeGatewayService.method
  const small = { readMaxBytes: MOST_CALL_BYTES }
  return (router: ConnectRouter) => {
    router.rpc(enrol, request => withRefusal(gateway.enrol(request)), small)
    router.rpc(refresh, request => withRefusal(gateway.refresh(request)), small)
    router.rpc(connect, async function* (frames, { requestHeader }: HandlerContext) {
      const token = /^Bearer (\S{1,256})$/.exec(requestHeader.get('authorization') ?? '')?.[1]
      try {
        yield* gateway.connect(token, frames)
      } catch (error) {
        throw refusal(error)
      }
    })
  }
}

async function withRefusal<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    throw refusal(error)
  }
}

/** The reason goes along by name, so that the other end need not read sentences. What is not a refusal stays here. */
function refusal(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error
  if (!(error instanceof TunnelRefusal))
    return new ConnectError('internal error', Code.Internal, undefined, undefined, error)
  return new ConnectError(error.message, CODES[error.code], { 'waybill-refusal': error.code }, undefined, error)
}

async function pem(path: string): Promise<Buffer> {
  try {
    return await readOperatorFile(path)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new ListenError(`The tunnel's certificate or key cannot be read: ${reason}`, { cause })
  }
}

/** SHA-256 of the certificate, as a node pins it. */
function fingerprintOf(cert: Buffer): string {
  return new X509Certificate(cert).fingerprint256.replaceAll(':', '').toLowerCase()
}
