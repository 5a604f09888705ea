import { mkdtemp, rm, stat } from 'node:fs/promises'
import { constants, createServer as createHttp2, connect as http2, type IncomingHttpHeaders } from 'node:http2'
import { type AddressInfo, createServer, connect as tcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nodeAccess } from '../../node-agent/tunnel/access.ts'
import { enrol, type Identity, readIdentity } from '../../node-agent/tunnel/identity.ts'
import { grpcTransport, type NodeTransport } from '../../node-agent/tunnel/transport.ts'
import { openTunnel } from '../../node-agent/tunnel/tunnel.ts'
import { type ListeningTunnel, listenForNodes } from '../../runtime/host/tunnel.ts'
import { outboundProxies } from '../../shared/http/outbound/proxies.ts'
import { createLog, silentLog } from '../../shared/log/log.ts'
import { sleep } from '../../shared/time/sleep.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { ControlFrameSchema, type NodeFrame, NodeFrameSchema } from '../../shared/tunnel/gateway.gen.ts'
import { refreshMessage, type TunnelRefusal } from '../../shared/tunnel/protocol.ts'
import type { NodeCreated } from '../../shared/wire/runtime/node.ts'
import { opensslAvailable, selfSigned } from '../backends/certificate.ts'
import { expectWithin } from '../crowding.ts'
import { forwardProxy } from '../upstream/forward-proxy.ts'
import { type Api, api } from './api.ts'
import { until } from './node-fixture.ts'

const openssl = opensslAvailable()

let folder: string
let control: Api
let tunnel: ListeningTunnel
let transport: NodeTransport
const clock = manualClock(new Date('2026-05-01T10:00:00Z'))

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-tunnel-'))
  control = await api({ clock })
  tunnel = await listenForNodes({ gateway: control.runtime.nodes.gateway, bind: LOCAL, insecure: false })
  transport = grpcTransport({ url: tunnel.at.endpoint, insecure: false })
})
afterEach(async () => {
  await tunnel.close()
  await control.close()
  await rm(folder, { recursive: true, force: true })
})

const LOCAL = { host: '127.0.0.1', port: 0 }
const announce = (name = 'one') => control.json<NodeCreated>(201, 'POST', '/v1/nodes', { name })
const enrolled = async (name = 'one'): Promise<Identity> =>
  enrol(join(folder, `${name}.json`), (await announce(name)).enrolToken, name, transport)
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'nothing',
    (error: TunnelRefusal) => error.code,
  )

const hello = (nodeId: string, more: object = {}): NodeFrame =>
  create(NodeFrameSchema, { body: { case: 'hello', value: { nodeId, streamId: 's1', proto: 1, ...more } } })

/** Sends these frames, keeps the stream open, and gives what comes back until it ends or fails. */
async function talk(token: string, frames: readonly NodeFrame[], most = 1): Promise<string[]> {
  const gone = new AbortController()
  const { promise: over, resolve } = Promise.withResolvers<void>()
  async function* outgoing() {
    yield* frames
    await over
  }
  const heard: string[] = []
  try {
    for await (const frame of transport.connect(token, outgoing(), gone.signal)) {
      heard.push(frame.body.case ?? 'none')
      if (heard.length === most) break
    }
    return heard
  } finally {
    resolve()
    gone.abort()
  }
}

/** With nothing to report. */
const worker = {
  ...{ nodeId: 'n', active: () => 0, held: async () => [], storeId: async () => 's', handle: async () => undefined },
  ...{ pendingReports: async () => [], acknowledged: async () => undefined, beat: async () => undefined },
  asks: {
    ask: () => Promise.reject(new Error('no')),
    granted: () => undefined,
    open: () => [],
    onAsk: () => undefined,
  },
  read: async () => ({ status: 404, body: new Uint8Array() }),
  over: async () => undefined,
  limits: async () => undefined,
}

it('is dialled again after a pause where it ends at once, ever longer, and at once where it was open for a while', async () => {
  const pauses: number[] = []
  let dials = 0
  const welcome = create(ControlFrameSchema, { body: { case: 'welcome', value: { lostSeconds: 30 } } })
  const ends: NodeTransport = {
    ...transport,
    async *connect() {
      // The fourth is open for a while.
      if (++dials === 4) clock.advance(5000)
      yield welcome
    },
  }
  const made = openTunnel({
    ...{ transport: ends, worker, backends: [], slots: 1, clock, log: silentLog() },
    access: { token: async () => 't', drop: () => undefined },
    machine: () => ({ cpu: 0, vcpus: 1, memoryMb: 1, memoryFreeMb: 1 }),
    delay(failures) {
      pauses.push(failures)
      return 1
    },
  })
  await until(async () => dials >= 7, 'it has dialled')
  await made.close()
  expect(pauses.slice(0, 5)).toEqual([1, 2, 3, 1, 2])
})

it('names the setting of an authority that cannot be read', () => {
  const url = 'https://control.example'
  expect(() => grpcTransport({ url, ca: join(folder, 'none.pem'), insecure: false })).toThrow(
    /^PLATFORM_CONTROL_CA: .*ENOENT/,
  )
})

it('goes by a proxy, which is named where it refuses', async () => {
  let how: number | undefined = 407
  const proxy = await forwardProxy({ port: Number(new URL(tunnel.at.endpoint).port), answer: () => how })
  const network = outboundProxies({ http_proxy: proxy.origin.replace('//', '//me:secret@') })
  const by = grpcTransport({ url: 'http://control.example:81', insecure: true, network })
  const path = join(folder, 'by.json')
  const { enrolToken } = await announce('by')
  const refused = await enrol(path, enrolToken, 'by', by).catch((error: unknown) => String(error))
  expect(refused).toMatch(/the tunnel to http:\/\/control\.example:81: the proxy that http_proxy names does not accept/)
  expect(refused).not.toContain('secret')
  how = undefined
  const identity = await enrol(path, enrolToken, 'by', by)
  const token = await nodeAccess(identity, by, clock.now).token()
  expect(token).toMatch(/./)
  expect(new Set(proxy.asked)).toEqual(
    new Set([`CONNECT control.example:81 Basic ${Buffer.from('me:secret').toString('base64')}`]),
  )
  await proxy.close()
})

it.each(['goaway', 'destroy'] as const)('a call after a %s of the other end finds a new connection', async how => {
  let sessions = 0
  const server = createHttp2((_, response) => {
    response.writeHead(200, { 'content-type': 'application/grpc', 'grpc-status': '16', 'grpc-message': 'refused' })
    response.end()
  })
  let end = () => undefined
  server.on('session', session => {
    sessions += 1
    end = () => void session[how]()
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const to = grpcTransport({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, insecure: false })
  const { enrolToken } = await announce()
  for (const expected of [1, 2, 3]) {
    await expect(enrol(join(folder, 'other.json'), enrolToken, 'x', to)).rejects.toThrow(/: refused$/)
    expect(sessions).toBe(expected)
    end()
    // The other end hears of it a turn later, or only when it calls.
    if (expected === 2) await sleep(20)
  }
  end()
  server.close()
})

it('a call that an ending connection refuses unread is made once more', async () => {
  let refused = 0
  const server = createHttp2()
  server.on('stream', stream => {
    stream.on('error', () => undefined)
    if (refused++ < 1) {
      stream.session?.goaway()
      stream.close(constants.NGHTTP2_REFUSED_STREAM)
      return
    }
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '16', 'grpc-message': 'read' },
      { endStream: true },
    )
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const to = grpcTransport({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, insecure: false })
  const { enrolToken } = await announce()
  await expect(enrol(join(folder, 'unread.json'), enrolToken, 'x', to)).rejects.toThrow(/: read$/)
  server.close()
})

it('gives up a connection that does not come to be, and makes another', async () => {
  let connections = 0
  const silent = createServer(socket => {
    connections += 1
    socket.on('error', () => undefined)
  })
  await new Promise<void>(done => silent.listen(0, '127.0.0.1', done))
  const { port } = silent.address() as AddressInfo
  const to = grpcTransport({ url: `https://127.0.0.1:${port}`, insecure: false, connectMs: 100 })
  const { enrolToken } = await announce()
  for (const expected of [1, 2]) {
    await expect(enrol(join(folder, 'silent.json'), enrolToken, 'x', to)).rejects.toThrow(
      /^the tunnel to https:\/\/127\.0\.0\.1:\d+: no encrypted connection came about within 0\.1 s$/,
    )
    expect(connections).toBe(expected)
  }
  silent.close()
})

it('a node gives up a stream on which no welcome comes, and dials again', async () => {
  let dials = 0
  const holdsBack: NodeTransport = {
    ...transport,
    // As something between them that answers pings, and passes nothing on before the request has ended.
    async *connect(_token, _frames, gone) {
      dials += 1
      await new Promise((_, reject) => gone.addEventListener('abort', () => reject(gone.reason)))
      yield* []
    },
  }
  const lines: string[] = []
  const made = openTunnel({
    ...{ transport: holdsBack, worker, backends: [], slots: 1, clock, welcomeMs: 20 },
    log: createLog({ filter: { all: 'info', byTarget: new Map() }, write: line => lines.push(JSON.stringify(line)) }),
    access: { token: async () => 't', drop: () => undefined },
    machine: () => ({ cpu: 0, vcpus: 1, memoryMb: 1, memoryFreeMb: 1 }),
    delay: () => 1,
  })
  await until(async () => dials >= 3, 'it has dialled again')
  await made.close()
  expect(lines[0]).toContain('the control plane did not welcome this node within 0.02 s')
})

describe('enrolment', () => {
  it('works once, keeps the identity to its owner, and stores no token', async () => {
    const { enrolToken, command } = await announce()
    expect(command).toContain(`PLATFORM_ENROL_TOKEN=${enrolToken}`)
    const path = join(folder, 'one.json')
    const made = await enrol(path, enrolToken, 'one', transport)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readIdentity(path)).toMatchObject({ nodeId: made.nodeId, pool: 'default', poolKeys: made.poolKeys })
    expect(await codeOf(enrol(path, enrolToken, 'one', transport))).toBe('unauthenticated')
    const { rows } = await control.db.execute('select * from nodes')
    expect(JSON.stringify(rows)).not.toContain(enrolToken)
  })

  it('refuses a wrong token and one that is an hour old', async () => {
    const wrong = `wb_node_${'A'.repeat(43)}`
    expect(await codeOf(enrol(join(folder, 'x'), wrong, 'x', transport))).toBe('unauthenticated')
    const away = grpcTransport({ url: 'http://127.0.0.1:1', insecure: false })
    const named = /^the tunnel to http:\/\/127\.0\.0\.1:1: connect ECONNREFUSED/
    await expect(enrol(join(folder, 'x'), wrong, 'x', away)).rejects.toThrow(named)
    const { enrolToken } = await announce()
    clock.advance(3_600_001)
    expect(await codeOf(enrol(join(folder, 'x'), enrolToken, 'x', transport))).toBe('unauthenticated')
  })

  it('hands the key of a pool from node to node, and refuses while nobody has it at hand, which a node waits for', async () => {
    await enrolled()
    const { enrolToken } = await announce('two')
    const waits: number[] = []
    const wait = async (ms: number) => void waits.push(ms)
    expect(await codeOf(enrol(join(folder, 'two.json'), enrolToken, 'two', transport, wait))).toBe('not_ready')
    expect(waits).toHaveLength(5)
    expect(waits[4]! > waits[0]!).toBe(true)
  })
})

describe('an access token', () => {
  it('is given for a proof, once for each, and not by a clock that is off', async () => {
    const { nodeId, signer } = await enrolled()
    const proof = async (atMs: number, nonce = crypto.getRandomValues(new Uint8Array(24))) => {
      const atUnix = Math.floor(atMs / 1000)
      return {
        nodeId,
        atUnix: BigInt(atUnix),
        nonce,
        signature: await signer.sign(refreshMessage(nodeId, atUnix, nonce)),
      }
    }
    const good = await proof(clock.now().getTime())
    expect((await transport.refresh(good)).accessToken).toMatch(/^wb_access_/)
    expect(await codeOf(transport.refresh(good))).toBe('unauthenticated')
    const other = await proof(clock.now().getTime())
    expect(await codeOf(transport.refresh({ ...other, atUnix: other.atUnix + 1n }))).toBe('unauthenticated')
    const late = transport.refresh(await proof(clock.now().getTime() - 61_000))
    expect(await codeOf(late)).toBe('unauthenticated')
    await expect(late).rejects.toThrow(/clock is 6\d s behind that of the control plane/)
    const early = transport.refresh(await proof(clock.now().getTime() + 600_000))
    await expect(early).rejects.toThrow(/clock is 600 s ahead of that of the control plane/)
    expect((await transport.refresh(await proof(clock.now().getTime() + 59_000))).accessToken).toBeDefined()
  })

  it('ends after an hour, and a node takes a new one when a quarter of it is left', async () => {
    const identity = await enrolled()
    const access = nodeAccess(identity, transport, clock.now)
    const first = await access.token()
    clock.advance(44 * 60_000)
    expect(await access.token()).toBe(first)
    clock.advance(2 * 60_000)
    const second = await access.token()
    expect(second).not.toBe(first)
    expect(await talk(first, [hello(identity.nodeId)])).toEqual(['welcome'])
    clock.advance(15 * 60_000)
    expect(await codeOf(talk(first, [hello(identity.nodeId)]))).toBe('unauthenticated')
    expect(await talk(second, [hello(identity.nodeId)])).toEqual(['welcome'])
  })
})

describe('a stream', () => {
  const numbered = (seq: number, runId: string = crypto.randomUUID()) =>
    create(NodeFrameSchema, { seq: BigInt(seq), body: { case: 'accept', value: { runId, epoch: 1n, ok: true } } })

  it.each([
    ['a bad token', 'nonsense', (id: string) => [hello(id)], 'unauthenticated'],
    ['no hello first', undefined, () => [numbered(1)], 'unauthenticated'],
    ['a hello of another node', undefined, () => [hello(crypto.randomUUID())], 'unauthenticated'],
    ['an unknown version', undefined, (id: string) => [hello(id, { proto: 2 })], 'unknown_protocol'],
    ['a gap', undefined, (id: string) => [hello(id), numbered(1), numbered(3)], 'out_of_order'],
    ['a second hello', undefined, (id: string) => [hello(id), hello(id)], 'bad_frame'],
    ['an empty frame', undefined, (id: string) => [hello(id), create(NodeFrameSchema, {})], 'bad_frame'],
    [
      'a bundle of a thousand and one',
      undefined,
      (id: string) => [
        hello(id),
        create(NodeFrameSchema, {
          seq: 1n,
          body: { case: 'bundle', value: { frames: Array(1001).fill(numbered(0)) } },
        }),
      ],
      'bad_frame',
    ],
    ['an order without a number', undefined, (id: string) => [hello(id), numbered(0)], 'bad_frame'],
    ['a long stream id', undefined, (id: string) => [hello(id, { streamId: 'x'.repeat(65) })], 'bad_frame'],
    [
      'a frame too large',
      undefined,
      (id: string) => [hello(id, { streamId: 'x'.repeat(4 * 1024 * 1024 + 1) })],
      'too_large',
    ],
  ])('is refused for %s', async (_why, token, frames, expected) => {
    const identity = await enrolled()
    const access = token ?? (await nodeAccess(identity, transport, clock.now).token())
    expect(await codeOf(talk(access, frames(identity.nodeId), 99))).toBe(expected)
  })

  it('drops what a node says about runs that are not its own, and counts it', async () => {
    const identity = await enrolled()
    const token = await nodeAccess(identity, transport, clock.now).token()
    await control.json(201, 'POST', '/v1/agents', { name: 'echo', manifest: {} })
    const { id } = await control.json<{ id: string }>(201, 'POST', '/v1/runs', { agentName: 'echo' })
    expect(await talk(token, [hello(identity.nodeId), numbered(1, id), numbered(2)], 2)).toEqual(['welcome', 'ackOnly'])
    await until(async () => {
      const metrics = await (await control.call('GET', '/metrics')).text()
      return metrics.includes('waybill_tunnel_frames_dropped_total{reason="not_its_run"} 2')
    }, 'both are counted')
  })
})

/** The status of a call that says how long its message is, and nothing more; undefined while there is none. */
function halfSaid(method: string, token?: string): { status: () => string | undefined; end(): void } {
  const session = http2(tunnel.at.endpoint)
  const call = session.request({
    ...{ ':method': 'POST', ':path': `/waybill.node.v1.NodeGateway/${method}`, te: 'trailers' },
    ...{ 'content-type': 'application/grpc+proto', ...(token && { authorization: `Bearer ${token}` }) },
  })
  let status: string | undefined
  const read = (headers: IncomingHttpHeaders) => (status ??= headers['grpc-status'] as string | undefined)
  call.on('response', read).on('trailers', read).resume()
  call.write(Uint8Array.of(0, 0, 63, 255, 255))
  return { status: () => status, end: () => session.destroy() }
}

describe('memory for messages that are announced', () => {
  it('is not taken for four megabytes of a stranger', async () => {
    for (const method of ['Enrol', 'Refresh']) {
      const call = halfSaid(method)
      await until(async () => call.status() === '8', 'the call is refused')
      call.end()
    }
  })

  it('is taken for a few streams of a node', async () => {
    const identity = await enrolled()
    const token = await nodeAccess(identity, transport, clock.now).token()
    const calls = Array.from({ length: 6 }, () => halfSaid('Connect', token))
    const refused = () => calls.filter(call => call.status() === '10').length
    await until(async () => refused() === 2, 'two of six are refused')
    for (const call of calls) call.end()
    await until(
      async () =>
        (await talk(token, [hello(identity.nodeId)], 1).catch((error: TunnelRefusal) => [error.code]))[0] === 'welcome',
      'the node is welcome once they have gone',
    )
  })
})

describe('a connection', () => {
  const frameOf = (type: number, flags: number, stream: number, payload: Uint8Array): Buffer => {
    const head = Buffer.alloc(9)
    head.writeUIntBE(payload.length, 0, 3)
    head[3] = type
    head[4] = flags
    head.writeUInt32BE(stream, 5)
    return Buffer.concat([head, payload])
  }
  const header = (name: string, value: string) =>
    Buffer.concat([Uint8Array.of(0, name.length), Buffer.from(name), Uint8Array.of(value.length), Buffer.from(value)])

  it('may bring a message a byte at a time, and other callers are answered meanwhile', async () => {
    const token = await nodeAccess(await enrolled(), transport, clock.now).token()
    const headers = {
      ...{ ':method': 'POST', ':scheme': 'http', ':path': '/waybill.node.v1.NodeGateway/Connect', ':authority': 'x' },
      ...{ 'content-type': 'application/grpc+proto', te: 'trailers', authorization: `Bearer ${token}` },
    }
    const socket = tcp(Number(new URL(tunnel.at.endpoint).port), '127.0.0.1').resume()
    socket.on('error', () => undefined)
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    socket.write(frameOf(4, 0, 0, new Uint8Array()))
    socket.write(frameOf(1, 4, 1, Buffer.concat(Object.entries(headers).map(([name, value]) => header(name, value)))))
    socket.write(frameOf(0, 0, 1, Uint8Array.of(0, 0, 63, 255, 255)))
    const one = frameOf(0, 0, 1, Uint8Array.of(0))
    const before = performance.now()
    socket.write(Buffer.concat(Array.from({ length: 60_000 }, () => one)))
    await until(async () => socket.bytesWritten > 60_000 * one.length, 'they are on their way')
    for (let at = 0; at < 20; at++) await new Promise(resolve => setTimeout(resolve, 10))
    expectWithin(performance.now() - before, 2000)
    socket.destroy()
  })

  it('ends when its streams are reset one after the other', async () => {
    const session = http2(tunnel.at.endpoint)
    session.on('error', () => undefined)
    const closed = new Promise(resolve => session.once('close', resolve))
    for (let at = 0; at < 80; at++) {
      const call = session.request({ ':method': 'POST', ':path': '/waybill.node.v1.NodeGateway/Enrol' })
      call.on('error', () => undefined).close(8)
    }
    await closed
  })
})

describe('the wire', () => {
  it('is not plain text beyond this machine unless somebody says so', async () => {
    const gateway = control.runtime.nodes.gateway
    const bind = { host: '0.0.0.0', port: 0 }
    await expect(listenForNodes({ gateway, bind, insecure: false })).rejects.toThrow('PLATFORM_TUNNEL_TLS_CERT')
    expect(() => grpcTransport({ url: 'http://control.example:8081', insecure: false })).toThrow('plain text')
    expect(() => grpcTransport({ url: 'http://control.example:8081', insecure: true })).not.toThrow()
  })

  it.runIf(openssl)('goes over TLS to the certificate that is pinned, and to no other', async () => {
    const { cert, key } = selfSigned(folder, 'control')
    const gateway = control.runtime.nodes.gateway
    const over = await listenForNodes({ gateway, bind: LOCAL, tls: { cert, key }, insecure: false })
    try {
      expect(over.at).toMatchObject({ endpoint: expect.stringMatching(/^https:/), tlsFingerprint: expect.any(String) })
      const url = over.at.endpoint
      const at = (more: object) => grpcTransport({ url, insecure: false, ca: cert, ...more })
      const pinned = at({ pin: over.at.tlsFingerprint ?? '' })
      const path = join(folder, 'tls.json')
      const { nodeId } = await enrol(path, (await announce('tls')).enrolToken, 'tls', pinned)
      expect(nodeId).toBeDefined()
      const { enrolToken } = await announce('tls2')
      expect(await codeOf(enrol(join(folder, 'n'), enrolToken, 'n', at({ pin: '0'.repeat(64) })))).toBe('closing')
      expect(await codeOf(enrol(join(folder, 'n'), enrolToken, 'n', at({})))).toBe('closing')
    } finally {
      await over.close()
    }
  })

  it('is announced where nodes look for it', async () => {
    const look = async () => (await control.call('GET', '/.well-known/platform-nodes')).json()
    expect(await look()).toEqual({ endpoint: '', tlsFingerprint: null, proto: 1 })
    control.runtime.nodes.listening(tunnel.at)
    expect(await look()).toEqual({ ...tunnel.at, proto: 1 })
  })
})
