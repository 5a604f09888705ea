import type { SecureClientSessionOptions } from 'node:http2'
import { isIP, type Socket, connect as tcp } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as tls } from 'node:tls'
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
  /** A connection that is not there after so long is given up. */
  connectMs?: number
}

const CALL_MS = 15_000
/** Within the time of a call, so that it can say what was wrong. */
const CONNECT_MS = 10_000
/** A connection on which nothing came for so long is asked whether it is there, and has as long to answer. */
const PING_MS = 15_000

function authorityOf(file: string): Buffer {
  try {
    return readRegular(file)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new EnvError(`PLATFORM_CONTROL_CA: ${file} cannot be read: ${why}`, { cause })
  }
}

/** gRPC over HTTP/2. Plain text goes only to this machine, unless the operator decides otherwise. */
export function grpcTransport({ url, ca, pin, insecure, network, connectMs = CONNECT_MS }: GrpcOptions): NodeTransport {
  const { protocol, hostname } = new URL(url)
  if (protocol === 'http:' && !insecure && !isLoopback(hostname.replace(/^\[|\]$/g, ''))) {
    throw new EnvError(
      `PLATFORM_CONTROL_URL: ${url} would carry keys and prompts in plain text; use https, or set PLATFORM_TUNNEL_INSECURE=1 where something else encrypts it`,
    )
  }
  const nodeOptions: SecureClientSessionOptions = {
    ...(ca !== undefined && { ca: authorityOf(ca) }),
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
      sessionManager: dialledSessions({ url, options: nodeOptions, proxy, connectMs }),
      readMaxBytes: MOST_FRAME_BYTES,
      writeMaxBytes: MOST_FRAME_BYTES,
      acceptCompression: [],
    }),
  )
  return {
    enrol: request => withRefusal(url, () => client.enrol(create(EnrolRequestSchema, request), { timeoutMs: CALL_MS })),
    refresh: request =>
      withRefusal(url, () => client.refresh(create(RefreshRequestSchema, request), { timeoutMs: CALL_MS })),
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

async function withRefusal<T>(url: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call().catch(error => (isUnread(error) ? call() : Promise.reject(error)))
  } catch (error) {
    throw refusal(url, error)
  }
}

/** Refused by a connection that was ending, before anyone read it: it may be made again on the next one. */
function isUnread(error: unknown): boolean {
  return ConnectError.from(error).rawMessage.endsWith('NGHTTP2_REFUSED_STREAM')
}

const NAMES: readonly RefusalCode[] = [
  ...([
    'unauthenticated',
    'removed',
    'unknown_protocol',
    'out_of_order',
    'too_large',
    'bad_frame',
    'replaced',
  ] as const),
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

const NO_CONNECTION = new Error('the connection has ended')

interface Dialling {
  url: string
  options: SecureClientSessionOptions
  proxy: OutboundProxy | undefined
  connectMs: number
}

/**
 * Connections to the control plane. HTTP/2 waits for one without an end and wants that of a proxy at once, so each is there whole before
 * a session stands on it.
 */
function dialledSessions({ url, options, proxy, connectMs }: Dialling) {
  const { protocol } = new URL(url)
  const target = targetOf(new URL(url))
  let open: Socket | undefined
  let opening: Promise<void> | undefined
  const take = (): Duplex => {
    const socket = open
    if (!socket) throw NO_CONNECTION
    open = undefined
    return socket
  }
  const sessions = new Http2SessionManager(url, { pingIntervalMs: PING_MS }, { ...options, createConnection: take })
  const dial = async () => {
    const raw = proxy
      ? await (await import('../../shared/host/proxy-agent.ts')).openTunnel(proxy, target, connectMs)
      : await settled(tcp({ ...target, noDelay: true }), 'connect', {
          ms: connectMs,
          missed: 'no connection came about',
        })
    open?.destroy()
    if (protocol === 'http:') {
      open = raw
      return
    }
    const name = isIP(target.host) === 0 ? { servername: target.host } : { host: target.host }
    const secure = tls({ ...options, ...name, socket: raw, ALPNProtocols: ['h2'] })
    await settled(secure, 'secureConnect', { ms: connectMs, missed: 'no encrypted connection came about' })
    if (proxy && secure.alpnProtocol !== 'h2') {
      secure.destroy()
      throw new ProxyError(NO_HTTP2)
    }
    open = secure
  }
  const dialOnce = () => (opening ??= dial().finally(() => (opening = undefined)))
  const dialled: Pick<Http2SessionManager, 'authority' | 'notifyResponseByteRead' | 'request'> = {
    authority: sessions.authority,
    notifyResponseByteRead: stream => sessions.notifyResponseByteRead(stream),
    async request(...call) {
      const state = sessions.state()
      if (state === 'closed' || state === 'error') await dialOnce()
      try {
        return await sessions.request(...call)
      } catch (error) {
        // The session that it had has ended, which was noticed just now.
        if (error !== NO_CONNECTION) throw error
        await dialOnce()
        return sessions.request(...call)
      }
    },
  }
  return dialled
}

/** The socket once it is there; one that is not in time is closed. */
function settled<T extends Socket>(
  socket: T,
  event: string,
  { ms, missed }: { ms: number; missed: string },
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error(`${missed} within ${ms / 1000} s`)), ms)
    // Also of one that breaks off before a session is on it, which that notices.
    socket.on('error', error => {
      clearTimeout(timer)
      reject(error)
    })
    socket.once(event, () => {
      clearTimeout(timer)
      resolve(socket)
    })
  })
}
