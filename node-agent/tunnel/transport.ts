import type { SecureClientSessionOptions } from 'node:http2'
import { isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect } from 'node:tls'
import { create } from '@bufbuild/protobuf'
import { type Client, Code, ConnectError, createClient } from '@connectrpc/connect'
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node'
import { EnvError } from '../../shared/env/read-env.ts'
import { readRegular } from '../../shared/host/operator-file.ts'
import { isLoopback } from '../../shared/http/bind.ts'
import { ProxyError, proxyFaultIn } from '../../shared/http/outbound/bounded-body.ts'
import { targetOf } from '../../shared/http/outbound/outbound-rule.ts'
import type { OutboundProxy, Proxies } from '../../shared/http/outbound/proxies.ts'
import {
  type ControlFrame,
  type EnrolReply,
  type EnrolRequest,
  EnrolRequestSchema,
  type NodeFrame,
  NodeGateway,
  type RefreshReply,
  type RefreshRequest,
  RefreshRequestSchema,
} from '../../shared/tunnel/gateway.gen.ts'
import { MOST_FRAME_BYTES, type RefusalCode, TunnelRefusal } from '../../shared/tunnel/protocol.ts'

/** The wire under a node's end of the tunnel. Everything that fails is a TunnelRefusal. */
export interface NodeTransport {
  enrol(request: Omit<EnrolRequest, '$typeName'>): Promise<EnrolReply>
  refresh(request: Omit<RefreshRequest, '$typeName'>): Promise<RefreshReply>
  connect(token: string, frames: AsyncIterable<NodeFrame>, gone: AbortSignal): AsyncIterable<ControlFrame>
}

export interface GrpcOptions {
  url: string
  /** A PEM file to trust in place of the system's authorities; for a certificate that signs itself. */
  ca?: string | undefined
  /** SHA-256 of the certificate that the control plane must show, in hex. */
  pin?: string | undefined
  insecure: boolean
  /** Of this network, where its variables name one. */
  network?: Proxies | undefined
}

const CALL_MS = 15_000
/** A connection on which nothing came for so long is asked whether it is there, and has as long to answer. */
const PING_MS = 15_000

/** gRPC over HTTP/2. Plain text goes only to this machine, unless the operator decides otherwise. */
export function grpcTransport({ url, ca, pin, insecure, network }: GrpcOptions): NodeTransport {
  const { protocol, hostname } = new URL(url)
  if (protocol === 'http:' && !insecure && !isLoopback(hostname.replace(/^\[|\]$/g, ''))) {
    throw new EnvError(
      `PLATFORM_CONTROL_URL: ${url} would carry keys and prompts in plain text; use https, or set PLATFORM_TUNNEL_INSECURE=1 where something else encrypts it`,
    )
  }
  const nodeOptions: SecureClientSessionOptions = {
    ...(ca !== undefined && { ca: readRegular(ca) }),
    ...(pin !== undefined && {
      // In place of the name: a pinned certificate is known by itself.
      checkServerIdentity: (_host, certificate) =>
        certificate.fingerprint256.replaceAll(':', '').toLowerCase() === pin
          ? undefined
          : new Error('the control plane shows another certificate than the pinned one'),
    }),
  }
  const proxy = network?.ofUrl(new URL(url))
  const client = createClient(
    NodeGateway,
    createGrpcTransport({
      baseUrl: url,
      ...(proxy ? { sessionManager: sessionsByProxy(proxy, url, nodeOptions) } : { nodeOptions }),
      readMaxBytes: MOST_FRAME_BYTES,
      writeMaxBytes: MOST_FRAME_BYTES,
      pingIntervalMs: PING_MS,
      acceptCompression: [],
    }),
  )
  return {
    enrol: request => told(url, client.enrol(create(EnrolRequestSchema, request), { timeoutMs: CALL_MS })),
    refresh: request => told(url, client.refresh(create(RefreshRequestSchema, request), { timeoutMs: CALL_MS })),
    connect: (token, frames, gone) => stream(client, { url, token }, frames, gone),
  }
}

async function* stream(
  client: Client<typeof NodeGateway>,
  { url, token }: { url: string; token: string },
  frames: AsyncIterable<NodeFrame>,
  signal: AbortSignal,
): AsyncGenerator<ControlFrame> {
  try {
    yield* client.connect(frames, { signal, headers: { authorization: `Bearer ${token}` } })
  } catch (error) {
    throw refusal(url, error)
  }
}

async function told<T>(url: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    throw refusal(url, error)
  }
}

const NAMES: readonly RefusalCode[] = [
  ...(['unauthenticated', 'unknown_protocol', 'out_of_order', 'too_large', 'bad_frame', 'replaced'] as const),
  ...(['not_ready', 'closing'] as const),
]

/** What the control plane does not say itself is of the network, of TLS, or of another server: the address says where to look. */
function refusal(url: string, error: unknown): TunnelRefusal {
  const fault = ConnectError.from(error)
  const named = NAMES.find(name => name === fault.metadata.get('waybill-refusal'))
  const code = named ?? (fault.code === Code.ResourceExhausted ? 'too_large' : 'closing')
  const message = named ? fault.rawMessage : `the tunnel to ${url}: ${proxyFaultIn(error)?.message ?? fault.rawMessage}`
  return new TunnelRefusal(code, message, { cause: error })
}

const NO_HTTP2 =
  'what answers through the proxy does not speak HTTP/2: where the proxy opens what is encrypted, have this address passed on unopened'

/**
 * Connections to the control plane through a proxy. HTTP/2 wants a connection at once, so the tunnel is open before a session is. A
 * session that is replaced in the middle of a call finds none: the call fails, and the next one is dialled.
 */
function sessionsByProxy(proxy: OutboundProxy, url: string, options: SecureClientSessionOptions) {
  const { protocol } = new URL(url)
  const target = targetOf(new URL(url))
  let open: Socket | undefined
  let opening: Promise<void> | undefined
  const take = (): Duplex => {
    const socket = open
    if (!socket) throw new ProxyError('the connection through the proxy has ended')
    open = undefined
    return socket
  }
  const sessions = new Http2SessionManager(url, { pingIntervalMs: PING_MS }, { ...options, createConnection: take })
  const tunnel = async () => {
    const { openTunnel } = await import('../../shared/host/proxy-agent.ts')
    const socket = await openTunnel(proxy, target)
    open = protocol === 'http:' ? socket : await encrypted(socket, target.host, options)
  }
  const byProxy: Pick<Http2SessionManager, 'authority' | 'notifyResponseByteRead' | 'request'> = {
    authority: sessions.authority,
    notifyResponseByteRead: stream => sessions.notifyResponseByteRead(stream),
    async request(...call) {
      const state = sessions.state()
      if (state === 'closed' || state === 'error') {
        opening ??= tunnel().finally(() => (opening = undefined))
        await opening
      }
      return sessions.request(...call)
    },
  }
  return byProxy
}

function encrypted(socket: Socket, host: string, options: SecureClientSessionOptions): Promise<Socket> {
  const name = isIP(host) === 0 ? { servername: host } : { host }
  const secure = connect({ ...options, ...name, socket, ALPNProtocols: ['h2'] })
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      clearTimeout(timer)
      secure.destroy()
      reject(error)
    }
    const timer = setTimeout(() => fail(new ProxyError('what answers through the proxy says nothing')), CALL_MS)
    secure.once('error', fail)
    secure.once('secureConnect', () => {
      if (secure.alpnProtocol !== 'h2') return fail(new ProxyError(NO_HTTP2))
      clearTimeout(timer)
      secure.off('error', fail)
      // One that breaks off before a session is on it is noticed by that.
      secure.on('error', () => undefined)
      resolve(secure)
    })
  })
}
