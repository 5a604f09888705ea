import { once } from 'node:events'
import { createServer as createHttp, request as httpRequest, type Server } from 'node:http'
import { type AddressInfo, connect, createServer, type Server as NetServer } from 'node:net'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EgressDecision } from '../../runtime/execution/sandbox/sandboxes.ts'
import type { ResolveHost } from '../../shared/host/resolve-host.ts'
import { readAllowEntry } from '../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import { outboundProxies } from '../../shared/http/outbound/proxies.ts'
import { eventually } from '../../tests/eventually.ts'
import { forwardProxy } from '../../tests/upstream/forward-proxy.ts'
import { type EgressProxyOptions, egressProxy } from './egress-proxy.ts'
import { reachedPlaces } from './reached.ts'

let remote: Server
let farPort: number
const open: NetServer[] = []
const heard: { method: string; url: string; headers: Record<string, unknown>; body: string }[] = []

beforeAll(async () => {
  remote = createHttp((request, response) => {
    let body = ''
    request.on('data', piece => (body += piece))
    request.on('end', () => {
      heard.push({ method: request.method!, url: request.url!, headers: request.headers, body })
      response.writeHead(207, { 'x-far': 'yes', connection: 'close' }).end('from afar')
    })
  })
  await new Promise<void>(done => remote.listen(0, '127.0.0.1', done))
  farPort = (remote.address() as AddressInfo).port
})
afterAll(() => {
  remote.close()
  for (const one of open) one.close()
})

interface Given extends Partial<EgressProxyOptions> {
  rules: EgressProxyOptions['egress']['rules']
}

/** A proxy on a port of this machine, in the place of a sandbox's channel. */
async function proxyOf({ rules, ...options }: Given) {
  const decisions: EgressDecision[] = []
  const proxy = egressProxy({
    egress: { rules, decided: async decision => void decisions.push(decision) },
    // The operator opens this machine, and no other private address.
    rule: outboundRule([readAllowEntry(`127.0.0.1:${farPort}`)!]),
    resolve: async host => [{ address: host === 'inner.example' ? '10.0.0.8' : '127.0.0.1', family: 4 }],
    ...options,
  })
  const server = createServer(proxy)
  open.push(server)
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const ask = (method: string, path: string, body = '', headers = {}) =>
    new Promise<{ status: number; text: string; headers: object }>((resolve, reject) => {
      const request = httpRequest({ port, method, path, headers }, response => {
        let text = ''
        response.on('data', piece => (text += piece))
        response.on('end', () => resolve({ status: response.statusCode!, text, headers: response.headers }))
      })
      request.on('error', reject)
      request.end(body)
    })
  const tunnel = (authority: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1')
      let said = ''
      let sent = false
      socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n\r\n`)
      socket.on('data', piece => {
        said += piece
        if (!sent && said.startsWith('HTTP/1.1 200'))
          socket.write('GET /through HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
        sent = true
      })
      socket.on('end', () => resolve(said))
      socket.on('error', reject)
    })
  return { ask, tunnel, decisions }
}

const rule = (host: string, more: { ports?: number[]; methods?: string[] } = {}) => ({
  host,
  ports: [farPort],
  ...more,
})

/** One call in the very bytes of a guest, to a far end that keeps the very bytes that come. */
async function throughRaw(method: string, headers: string[], body: string) {
  let sent = ''
  const recorder = createServer(socket => {
    socket.on('error', () => undefined)
    socket.on('data', piece => {
      sent += piece.toString('latin1')
      if (ends(sent)) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
    })
  })
  open.push(recorder)
  await new Promise<void>(done => recorder.listen(0, '127.0.0.1', done))
  const { port } = recorder.address() as AddressInfo
  const server = createServer(
    egressProxy({
      egress: { rules: [{ host: 'far.example', ports: [port] }], decided: async () => undefined },
      rule: outboundRule([readAllowEntry(`127.0.0.1:${port}`)!]),
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    }),
  )
  open.push(server)
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const guest = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const head = [`${method} http://far.example:${port}/public HTTP/1.1`, 'host: far.example', ...headers, '', ''].join(
    '\r\n',
  )
  guest.write(head + body)
  const answer = await new Promise<string>((done, failed) => {
    guest.once('data', piece => done(String(piece)))
    guest.once('error', failed)
    guest.once('end', () => failed(new Error('closed without an answer')))
  })
  guest.destroy()
  return { answer, sent }
}

/** The bodies of the requests in some bytes, by what their heads say; bytes behind the last whole one are a body as well. */
function bodiesOf(bytes: string): string[] {
  if (bytes === '') return []
  const [head = ''] = bytes.split('\r\n\r\n', 1)
  const rest = bytes.slice(head.length + 4)
  const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0)
  if (!/^transfer-encoding: *chunked$/im.test(head)) return [rest.slice(0, length), ...bodiesOf(rest.slice(length))]
  let body = ''
  let at = 0
  for (;;) {
    const line = rest.indexOf('\r\n', at)
    const size = Number.parseInt(rest.slice(at, line), 16)
    if (line < 0 || size === 0) return [body, ...(line < 0 ? [] : bodiesOf(rest.slice(line + 4)))]
    body += rest.slice(line + 2, line + 2 + size)
    at = line + 4 + size
  }
}

/** Whether a request is there whole, by what its head says. */
function ends(bytes: string): boolean {
  const [head = '', ...rest] = bytes.split('\r\n\r\n')
  if (/^transfer-encoding: *chunked$/im.test(head)) return bytes.endsWith('0\r\n\r\n')
  const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0)
  return rest.length > 0 && rest.join('\r\n\r\n').length >= length
}

describe('the way out of a sandbox', () => {
  it('lets through what the rules name, without what belongs to one hop, and says so first', async () => {
    const { ask, decisions } = await proxyOf({ rules: [rule('far.example', { methods: ['POST'] })] })
    const headers = {
      'proxy-authorization': 'x',
      connection: 'x-mine',
      'x-mine': '1',
      'x-kept': '2',
      host: 'other.example',
    }
    const answer = await ask('POST', `http://far.example:${farPort}/a?b=c`, 'body', headers)
    expect(answer).toMatchObject({ status: 207, text: 'from afar', headers: { 'x-far': 'yes' } })
    const got = heard.at(-1)!
    expect(got).toMatchObject({ method: 'POST', url: '/a?b=c', body: 'body' })
    expect(got.headers).toMatchObject({ host: `far.example:${farPort}`, 'x-kept': '2' })
    expect(Object.keys(got.headers)).not.toEqual(expect.arrayContaining(['x-mine']))
    expect(decisions).toEqual([{ allowed: true, method: 'POST', host: 'far.example', port: farPort }])
  })

  it('goes by the proxy of its network, to names that its rules and the operator let out', async () => {
    const corp = await forwardProxy({ port: farPort })
    const proxies = outboundProxies({ http_proxy: corp.origin.replace('//', '//me:pass@'), https_proxy: corp.origin })
    const resolve: ResolveHost = async host => {
      if (host === 'inner.example') return [{ address: '10.0.0.8', family: 4 }]
      throw Object.assign(new Error('not found'), { code: 'ENOTFOUND' })
    }
    const rules = [rule('far.example'), rule('inner.example'), rule('wiki.internal')]
    const places = reachedPlaces()
    const { ask, tunnel, decisions } = await proxyOf({ rules, proxies, resolve, places })
    const stolen = { 'proxy-authorization': 'Basic b2YgdGhlIGd1ZXN0' }
    const answered = await ask('POST', `http://far.example:${farPort}/a?b=c`, 'body', stolen)
    expect(answered).toMatchObject({ status: 207, text: 'from afar' })
    expect(await tunnel(`far.example:${farPort}`)).toContain('from afar')
    for (const inner of ['inner.example', 'wiki.internal']) {
      expect((await ask('GET', `http://${inner}:${farPort}/`)).status).toBe(403)
      expect(await tunnel(`${inner}:${farPort}`)).toContain('403')
    }
    expect(corp.asked).toEqual([
      `POST http://far.example:${farPort}/a?b=c Basic ${Buffer.from('me:pass').toString('base64')}`,
      `CONNECT far.example:${farPort}`,
    ])
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false, false, false, false])
    expect(places.take()).toMatchObject([{ host: 'far.example', port: farPort, calls: 2 }, {}, {}])
    await corp.close()
  })

  it('says that the proxy of its network refused', async () => {
    const corp = await forwardProxy({ port: farPort, answer: () => 407 })
    const proxies = outboundProxies({ http_proxy: corp.origin, https_proxy: corp.origin })
    const resolve: ResolveHost = async () => [{ address: '8.8.8.8', family: 4 }]
    const { ask, tunnel } = await proxyOf({ rules: [rule('far.example')], proxies, resolve })
    const plain = await ask('GET', `http://far.example:${farPort}/`)
    expect([plain.status, plain.text]).toEqual([502, expect.stringContaining('the proxy that http_proxy names')])
    expect(await tunnel(`far.example:${farPort}`)).toMatch(/502[\s\S]*the proxy that https_proxy names asks for a name/)
    await corp.close()
  })

  it('carries an encrypted connection to a host that a rule names without methods', async () => {
    const { tunnel, decisions } = await proxyOf({ rules: [rule('far.example')] })
    expect(await tunnel(`far.example:${farPort}`)).toContain('from afar')
    expect(decisions).toMatchObject([{ allowed: true, method: 'CONNECT' }])
  })

  it.each<[string, Given['rules'], string, string, RegExp]>([
    ['everything without rules', [], 'GET', 'http://far.example/', /do not name far\.example/],
    ['another host', [{ host: 'a.example', ports: [80] }], 'GET', 'http://b.example/', /do not name b\.example/],
    ['another port', [{ host: 'a.example', ports: [80] }], 'GET', 'http://a.example:81/', /do not open port 81/],
    [
      'another method',
      [{ host: 'a.example', ports: [80], methods: ['GET'] }],
      'PUT',
      'http://a.example/',
      /do not allow PUT/,
    ],
    [
      'a private address behind a name',
      [{ host: 'inner.example', ports: [80] }],
      'GET',
      'http://inner.example/',
      /^inner\.example leads to a private address;/,
    ],
    [
      'the metadata address',
      [{ host: '169.254.169.254', ports: [80] }],
      'GET',
      'http://169.254.169.254/',
      /metadata address/,
    ],
    [
      'a loopback port that is not the operator’s',
      [{ host: '127.0.0.1', ports: [1] }],
      'GET',
      'http://127.0.0.1:1/',
      /loopback address/,
    ],
  ])('refuses %s, with the reason on record', async (_what, rules, method, url, reason) => {
    const before = heard.length
    const { ask, decisions } = await proxyOf({ rules })
    expect(await ask(method, url)).toMatchObject({ status: 403, text: expect.stringMatching(reason) })
    expect(decisions).toMatchObject([{ allowed: false, reason: expect.stringMatching(reason) }])
    expect(heard).toHaveLength(before)
  })

  const HIDDEN = 'POST /admin/delete HTTP/1.1\r\nhost: far.example\r\ncontent-length: 0\r\n\r\n'
  const CHUNKED = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`
  const LENGTH = `content-length: ${HIDDEN.length}`

  it.each([
    ...['GET', 'HEAD', 'DELETE', 'OPTIONS', 'POST'].flatMap(method => [
      [method, ['transfer-encoding: chunked'], CHUNKED],
      [method, ['Transfer-Encoding: Chunked', 'connection: transfer-encoding'], CHUNKED],
      [method, [LENGTH], HIDDEN],
      [method, [LENGTH, 'connection: content-length'], HIDDEN],
    ]),
    ['GET', [], ''],
  ] as [string, string[], string][])('sends one request for one: %s %j', async (method, headers, body) => {
    const { answer, sent } = await throughRaw(method, headers, body)
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(bodiesOf(sent)).toEqual([body === '' ? '' : HIDDEN])
    expect(sent.startsWith(`${method} /public HTTP/1.1\r\n`)).toBe(true)
  })

  it.each([
    ['two ways to say where a body ends', ['transfer-encoding: chunked', LENGTH], CHUNKED],
    ['two lengths', [LENGTH, 'content-length: 0'], HIDDEN],
    ['another coding', ['transfer-encoding: gzip, chunked'], CHUNKED],
    ['chunks twice', ['transfer-encoding: chunked', 'transfer-encoding: chunked'], CHUNKED],
    ['a coding that ends nowhere', ['transfer-encoding: identity'], HIDDEN],
    ['a folded line', ['x-a: b', ' c', 'transfer-encoding:', ' chunked'], CHUNKED],
    ['a name with a space', ['transfer-encoding : chunked'], CHUNKED],
    ['chunks that are none', ['transfer-encoding: chunked'], HIDDEN],
  ])('sends nothing on of %s', async (_, headers, body) => {
    const { answer, sent } = await throughRaw('GET', headers, body)
    expect(answer).toMatch(/^HTTP\/1\.1 (400|403|502) /)
    expect(bodiesOf(sent).join('')).toBe('')
  })

  it.each([
    ['switches protocols', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nhello'],
    ['ends without an answer', ''],
    ['answers with something else', 'hello\r\n\r\n'],
  ])('answers a guest whose far end %s', async (_, says) => {
    const other = createServer(socket => {
      socket.on('error', () => undefined)
      socket.once('data', () => (says === '' ? socket.end() : socket.write(says)))
    })
    open.push(other)
    await new Promise<void>(done => other.listen(0, '127.0.0.1', done))
    const { port } = other.address() as AddressInfo
    const { ask } = await proxyOf({
      rules: [{ host: 'far.example', ports: [port] }],
      rule: outboundRule([readAllowEntry(`127.0.0.1:${port}`)!]),
    })
    expect(await ask('GET', `http://far.example:${port}/`)).toMatchObject({ status: 502 })
  })

  it('refuses to hide methods that a rule restricts', async () => {
    const { tunnel, decisions } = await proxyOf({ rules: [rule('far.example', { methods: ['GET'] })] })
    expect(await tunnel(`far.example:${farPort}`)).toMatch(/403[\s\S]*hides its method/)
    expect(decisions).toMatchObject([{ allowed: false, method: 'CONNECT' }])
  })

  it('lets nothing through that cannot be written down', async () => {
    const before = heard.length
    const proxy = await proxyOf({
      rules: [],
      egress: { rules: [rule('far.example')], decided: () => Promise.reject(new Error('the disk is full')) },
    })
    expect(await proxy.ask('GET', `http://far.example:${farPort}/`)).toMatchObject({ status: 502 })
    expect(heard).toHaveLength(before)
  })

  it('ends a flood of calls, and is no server of its own', async () => {
    const { ask, decisions } = await proxyOf({ rules: [], maxDecisions: 2 })
    for (let at = 0; at < 5; at++) expect((await ask('GET', 'http://x.example/')).status).toBe(403)
    expect(decisions).toHaveLength(2)
    expect((await ask('GET', '/plain')).status).toBe(403)
  })
})

describe('what was reached', () => {
  it('is counted by place and address, in both directions, and once', async () => {
    const places = reachedPlaces()
    const rows: ReturnType<typeof places.take> = []
    const proxy = await proxyOf({ rules: [rule('api.example'), rule('inner.example')], places })
    const body = 'x'.repeat(20_000)
    await proxy.ask('POST', `http://api.example:${farPort}/a`, body)
    await proxy.tunnel(`api.example:${farPort}`)
    await proxy.ask('GET', `http://inner.example:${farPort}/b`)
    await proxy.ask('GET', `http://other.example:${farPort}/c`)
    await eventually(() => {
      const seen = places.take()
      rows.push(...seen)
      const [api] = rows
      expect(rows.reduce((sum, row) => sum + row.calls, 0)).toBe(2)
      expect(api).toMatchObject({ host: 'api.example', port: farPort, address: '127.0.0.1' })
      expect(rows.reduce((sum, row) => sum + row.sentBytes, 0)).toBeGreaterThan(20_000)
      expect(rows.reduce((sum, row) => sum + row.receivedBytes, 0)).toBeGreaterThan(200)
    })
    expect(rows.filter(row => row.refused > 0).map(row => [row.host, row.refused, row.calls])).toEqual([
      ['inner.example', 1, 0],
      ['other.example', 1, 0],
    ])
    expect(places.take()).toEqual([])
  })

  it('takes a row for each of a hundred places, and one for all others', () => {
    const places = reachedPlaces()
    for (let port = 1; port <= 1000; port++) places.refused({ host: 'h'.repeat(300), port })
    const taken = places.take()
    expect([taken.length, taken.at(-1)]).toEqual([
      101,
      { host: '(more)', port: 0, calls: 0, refused: 900, sentBytes: 0, receivedBytes: 0 },
    ])
    expect(taken[0]!.host).toHaveLength(253)
  })
})

it('a connection that is not established in time is given up, and does not stay behind', async () => {
  // Its thread sleeps, so that the system takes two connections for it and answers no further one.
  const asleep = new Worker(
    `const { parentPort } = require('node:worker_threads')
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })`,
    { eval: true },
  )
  const [port] = (await once(asleep, 'message')) as [number]
  const waiting = [1, 2, 3].map(() => connect(port, '127.0.0.1').on('error', () => undefined))
  await eventually(() => expect(waiting.filter(one => one.connecting)).toHaveLength(1))
  const { ask } = await proxyOf({
    rules: [{ host: 'slow.example', ports: [port] }],
    rule: outboundRule([readAllowEntry(`127.0.0.1:${port}`)!]),
    connectMs: 100,
  })
  const connecting = () => process.getActiveResourcesInfo().filter(name => /ConnectWrap/.test(name)).length
  const before = connecting()
  const tunnelled = connect((open.at(-1)!.address() as AddressInfo).port, '127.0.0.1')
  tunnelled.write(`CONNECT slow.example:${port} HTTP/1.1\r\nhost: x\r\n\r\n`)
  const [refused] = (await once(tunnelled, 'data')) as [Buffer]
  expect(refused.toString()).toContain('no answer came in time')
  expect((await ask('GET', `http://slow.example:${port}/`)).status).toBe(502)
  await eventually(() => expect(connecting()).toBe(before))
  for (const one of [tunnelled, ...waiting]) one.destroy()
  await asleep.terminate()
})
