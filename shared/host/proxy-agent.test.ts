import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer as createSecure, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { networkTransport } from '../../router/host/undici-transport.ts'
import { type HeaderList, TransportError } from '../../router/upstream/transport.ts'
import { opensslAvailable, selfSigned } from '../../tests/backends/certificate.ts'
import { forwardProxy } from '../../tests/upstream/forward-proxy.ts'
import { answer, scriptedUpstream } from '../../tests/upstream/scripted.ts'
import { networkOf } from './proxy-agent.ts'

const openssl = await opensslAvailable()
const trusted = getCACertificates('default')
const open: { close(): Promise<unknown> }[] = []
let folder: string
let far: Server
let farPort: number

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-proxy-'))
  if (!openssl) return
  const { cert, key } = await selfSigned(folder, 'far.example')
  const pem = await readFile(cert, 'utf8')
  setDefaultCACertificates([...trusted, pem])
  far = createSecure({ cert: pem, key: await readFile(key, 'utf8') }, (request, response) => {
    response.end(`${request.headers.host} ${request.url} ${request.headers['proxy-authorization'] ?? 'no login'}`)
  })
  await new Promise<void>(done => far.listen(0, '127.0.0.1', done))
  farPort = (far.address() as AddressInfo).port
})
afterAll(async () => {
  setDefaultCACertificates(trusted)
  far?.closeAllConnections()
  far?.close()
  await rm(folder, { recursive: true, force: true })
})
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const timeouts = { connectMs: 500, firstByteMs: 5000, idleMs: 5000 }

async function call(vars: Record<string, string>, url: string, headers: HeaderList = []) {
  const transport = await networkTransport(timeouts, networkOf(vars))
  open.push(transport)
  const sent = { method: 'GET', url, headers, body: null, signal: AbortSignal.timeout(10_000), timeouts }
  const { status, body } = await transport.send(sent)
  let text = ''
  for await (const piece of body) text += Buffer.from(piece).toString()
  return { status, text }
}

async function refused(...given: Parameters<typeof call>): Promise<TransportError> {
  const error: unknown = await call(...given).catch((thrown: unknown) => thrown)
  if (error instanceof TransportError) return error
  throw new Error(`expected a refusal, got ${String(error)}`)
}

const withLogin = (origin: string) => origin.replace('//', '//me:p%40ss@')
const BASIC = `Basic ${Buffer.from('me:p@ss').toString('base64')}`

describe('calls by a proxy', () => {
  it.runIf(openssl)('go through a tunnel that the proxy opens to a name, and its login stays with it', async () => {
    const proxy = await forwardProxy({ port: farPort })
    open.push(proxy)
    const got = await call({ HTTPS_PROXY: withLogin(proxy.origin) }, 'https://far.example/a?b=c')
    expect(got).toEqual({ status: 200, text: 'far.example /a?b=c no login' })
    expect(proxy.asked).toEqual([`CONNECT far.example:443 ${BASIC}`])
  })

  it('ask it for plain http with the whole address, each with the name of its own host', async () => {
    const remote = await scriptedUpstream()
    remote.always(answer(200, 'plain'))
    const proxy = await forwardProxy({ port: Number(new URL(remote.origin).port) })
    open.push(remote, proxy)
    const given: HeaderList = [
      ['host', 'other.example'],
      ['proxy-authorization', 'Basic bm90OnRoaXM='],
      ['x-kept', 'é'],
    ]
    const got = await call({ http_proxy: withLogin(proxy.origin) }, 'http://far.example:81/a?b=c', given)
    expect(got.text).toBe('plain')
    expect(proxy.asked).toEqual([`GET http://far.example:81/a?b=c ${BASIC}`])
    const raw = remote.seen[0]!.rawHeaders
    expect(raw[raw.findIndex(name => name.toLowerCase() === 'host') + 1]).toBe('far.example:81')
    expect(raw).toContain('x-kept')
  })

  it('stay away from it for this machine and for what is excepted', async () => {
    const remote = await scriptedUpstream()
    remote.always(answer(200, 'straight'))
    open.push(remote)
    const vars = { http_proxy: 'http://127.0.0.1:1' }
    expect((await call(vars, remote.origin)).text).toBe('straight')
    expect((await refused(vars, 'http://nowhere.invalid/')).byProxy).toBe(true)
    expect((await refused({ ...vars, no_proxy: 'invalid' }, 'http://nowhere.invalid/')).byProxy).toBe(false)
  })

  it.each<[string, number | 'hang' | 'cut', RegExp]>([
    ['asks for a login', 407, /^the proxy that HTTPS_PROXY names does not accept the name and password/],
    ['refuses', 403, /^the proxy that HTTPS_PROXY names does not let connections to far\.example:443 out \(403\)/],
    ['cannot go on', 502, /^the proxy that HTTPS_PROXY names cannot reach far\.example:443 itself \(502\)/],
    ['is no proxy', 404, /^the proxy that HTTPS_PROXY names answered CONNECT far\.example:443 with 404/],
    ['lets out and breaks off', 'cut', /^the proxy that HTTPS_PROXY names let the connection .* ended before/],
    ['says nothing', 'hang', /^the proxy that HTTPS_PROXY names did not answer within 0.5 s/],
  ])(
    'a proxy that %s is named, without its login',
    async (_, how, words) => {
      const proxy = await forwardProxy({ port: 1, answer: () => how })
      open.push(proxy)
      const error = await refused({ HTTPS_PROXY: withLogin(proxy.origin) }, 'https://far.example/')
      expect(error.byProxy).toBe(true)
      expect(error.message).toMatch(words)
      expect(error.message).not.toMatch(/p@ss|p%40ss/)
    },
    20_000,
  )

  it('a proxy that asks for a login on plain http is named, and its answer is none of the upstream', async () => {
    const proxy = await forwardProxy({ port: 1, answer: () => 407 })
    open.push(proxy)
    const error = await refused({ HTTP_PROXY: proxy.origin }, 'http://far.example/')
    expect([error.byProxy, error.message]).toEqual([
      true,
      'the proxy that HTTP_PROXY names asks for a name and password (407): put them before its host, as in http://name:password@host:port',
    ])
  })

  it.each(['https://far.example/', 'http://far.example/'])(
    'a proxy that takes a login by NTLM or Negotiate alone is refused in words that say so: %s',
    async url => {
      const proxy = await forwardProxy({ port: 1, answer: () => 407, challenges: ['Negotiate', 'NTLM'] })
      open.push(proxy)
      const address = withLogin(proxy.origin)
      const error = await refused({ HTTPS_PROXY: address, HTTP_PROXY: address }, url)
      expect(error.byProxy).toBe(true)
      expect(error.message).toBe(
        `the proxy that ${url.startsWith('https') ? 'HTTPS' : 'HTTP'}_PROXY names takes a login by Negotiate or NTLM alone (407), and only Basic is supported: have it take Basic from this machine, or let it out without a login`,
      )
    },
  )

  it.each([
    [['Digest realm="a b", nonce="6ab", qop="auth", stale=false'], /takes a login by Digest alone/],
    [['NTLM', 'basic realm="corp, all"'], /does not accept the name and password/],
  ])('a challenge is read as %s', async (challenges, words) => {
    const proxy = await forwardProxy({ port: 1, answer: () => 407, challenges })
    open.push(proxy)
    const error = await refused({ HTTPS_PROXY: withLogin(proxy.origin) }, 'https://far.example/')
    expect(error.message).toMatch(words)
  })

  it('are made by the fetch of the host as well', async () => {
    const remote = await scriptedUpstream()
    remote.always(answer(200, 'fetched'))
    const proxy = await forwardProxy({ port: Number(new URL(remote.origin).port) })
    open.push(remote, proxy)
    const by = networkOf({ http_proxy: withLogin(proxy.origin) }).fetch
    const got = await by('http://far.example/v1/traces', { method: 'POST', body: 'a trace', headers: { 'x-a': 'b' } })
    expect([got.status, await got.text()]).toEqual([200, 'fetched'])
    expect(proxy.asked).toEqual([`POST http://far.example/v1/traces ${BASIC}`])
    expect(String(remote.seen[0]?.body)).toBe('a trace')
    expect(await (await by(remote.origin)).text()).toBe('fetched')
    expect(proxy.asked).toHaveLength(1)
  })

  it('one that is not there is named', async () => {
    const both = { HTTPS_PROXY: 'http://127.0.0.1:1', HTTP_PROXY: 'http://127.0.0.1:1' }
    expect((await refused(both, 'http://far.example/')).message).toMatch(/^the proxy that HTTP_PROXY names cannot/)
    const error = await refused({ HTTPS_PROXY: 'http://me:secret@127.0.0.1:1' }, 'https://far.example/')
    expect(error.message).toMatch(
      /^the proxy that HTTPS_PROXY names cannot be used \(ECONNREFUSED\): check HTTPS_PROXY/,
    )
  })
})
