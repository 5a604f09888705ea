import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { platformEgress } from '../../runtime/host/worker.ts'
import { expectWithin } from '../../tests/crowding.ts'
import { forwardProxy } from '../../tests/upstream/forward-proxy.ts'
import { answer, reset, type ScriptedUpstream, scriptedUpstream, steppedStream } from '../../tests/upstream/scripted.ts'
import { readAllowEntry } from '../http/outbound/allow-list.ts'
import { denialIn, OutboundDenied, proxyFaultIn, readAtMost } from '../http/outbound/bounded-body.ts'
import type { EgressClient, EgressInit } from '../http/outbound/egress-client.ts'
import { neverSent } from '../http/outbound/never-sent.ts'
import { outboundRule } from '../http/outbound/outbound-rule.ts'
import { outboundProxies, type Proxies } from '../http/outbound/proxies.ts'
import { createLog } from '../log/log.ts'
import { nodeEgress } from './node-egress.ts'
import { networkOf } from './proxy-agent.ts'
import type { ResolveHost } from './resolve-host.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function upstream(): Promise<ScriptedUpstream> {
  const made = await scriptedUpstream()
  open.unshift(made)
  made.always(answer(200, '{"ok":true}'))
  return made
}

function egress(allowed: readonly string[], resolve?: ResolveHost, proxies?: Proxies): EgressClient {
  const rule = outboundRule(allowed.map(entry => readAllowEntry(entry)!))
  const made = nodeEgress({ rule, proxies, ...(resolve && { resolve }) })
  open.unshift(made)
  return made
}

const never = new AbortController().signal
const call = (way: EgressClient, url: string, init: Partial<EgressInit> = {}) =>
  way.fetch(new URL(url), { signal: never, ...init })

async function refusal(made: Promise<unknown>): Promise<string> {
  const error = await made.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  const denial = denialIn(error)
  if (!denial) throw new Error(`expected a refusal, got ${String(error)}`)
  return denial.message
}

const names = (addresses: Readonly<Record<string, readonly string[]>>): ResolveHost => {
  return async host => (addresses[host] ?? []).map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
}

describe('the way out on Node', () => {
  it('calls an allowed loopback address and refuses the same one without an entry', async () => {
    const remote = await upstream()
    const answered = await call(egress(['127.0.0.1']), `${remote.origin}/a?b=c`, { method: 'POST', body: 'hello' })
    expect([answered.status, await answered.json()]).toEqual([200, { ok: true }])
    expect(remote.seen[0]).toMatchObject({ method: 'POST', url: '/a?b=c' })
    expect(remote.seen[0]?.body.toString()).toBe('hello')
    expect(await refusal(call(egress([]), remote.origin))).toContain('loopback address')
    expect(remote.seen).toHaveLength(1)
  })

  it('lets go of an answer that is not read to its end, and goes on', async () => {
    const remote = await upstream()
    remote.always(answer(200, 'x'.repeat(200_000)))
    const way = egress(['127.0.0.1'])
    const unread = await call(way, remote.origin)
    await unread.body?.cancel()
    const begun = (await call(way, remote.origin)).body!.getReader()
    expect((await begun.read()).value).toBeInstanceOf(Uint8Array)
    await begun.cancel()
    // What Node throws of a stream that was cancelled comes a turn later, and ends the process.
    await setTimeout(50)
    expect((await (await call(way, remote.origin)).text()).length).toBe(200_000)
  })

  it('lets others have their turn between the large pieces of an answer', async () => {
    const remote = await upstream()
    remote.always(answer(200, 'x'.repeat(4 << 20)))
    const reader = (await call(egress(['127.0.0.1']), remote.origin)).body!.getReader()
    let [pieces, most, over] = [0, 0, false]
    const turns = (async () => {
      for (; !over; most = Math.max(most, pieces)) {
        pieces = 0
        await setImmediate()
      }
    })()
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      pieces += Number(piece.value.length >= 16_384)
      // As long as it takes to read a thousand small events.
      for (const end = performance.now() + 2; performance.now() < end; );
    }
    over = true
    await turns
    expect(most).toBe(1)
  })

  it('refuses a name when any one of its addresses is private, without a connection', async () => {
    const remote = await upstream()
    const port = new URL(remote.origin).port
    const resolve = names({ 'mixed.example': ['8.8.8.8', '127.0.0.1'] })
    const lines: string[] = []
    const write = (line: string) => void lines.push(line)
    const log = createLog({ filter: { all: 'info', byTarget: new Map() }, write })
    const way = nodeEgress({ rule: outboundRule(), resolve, log })
    open.unshift(way)
    // Who wrote the name learns that it is refused, and the operator which address it stands for.
    expect(await refusal(call(way, `http://mixed.example:${port}/`))).toBe(
      `mixed.example leads to a loopback address; an operator can open it with the entry mixed.example:${port} in PLATFORM_OUTBOUND_ALLOW`,
    )
    expect(await way.problem(new URL(`http://mixed.example:${port}/`))).not.toContain('127.0.0.1')
    expect(lines.map(line => JSON.parse(line))).toMatchObject(
      Array(2).fill({ level: 'info', host: 'mixed.example', port: Number(port), address: '127.0.0.1' }),
    )
    expect(remote.sockets()).toBe(0)
  })

  it('connects to the address it looked at, and asks the name server once for a connection', async () => {
    const remote = await upstream()
    let asked = 0
    const resolve: ResolveHost = async () => {
      asked++
      return [{ address: '127.0.0.1', family: 4 }]
    }
    const way = egress(['far.example'], resolve)
    const port = new URL(remote.origin).port
    for (let n = 0; n < 3; n++) await (await call(way, `http://far.example:${port}/${n}`)).text()
    expect(remote.seen).toHaveLength(3)
    expect(remote.seen[0]?.rawHeaders).toContain(`far.example:${port}`)
    // The pool may open a second socket while the first is not free yet.
    expect(asked).toBe(remote.sockets())
  })

  it('refuses a name that was public when it was configured and is private when it is called', async () => {
    const remote = await upstream()
    const answers = ['93.184.216.34', '127.0.0.1', '169.254.169.254']
    const resolve: ResolveHost = async () => [{ address: answers.shift() ?? '10.0.0.1', family: 4 }]
    const way = egress([], resolve)
    const target = `http://rebind.example:${new URL(remote.origin).port}/`
    expect(await way.problem(new URL(target))).toBeUndefined()
    expect(await refusal(call(way, target))).toContain('loopback')
    expect(await refusal(call(way, target))).toContain('metadata')
    expect(await refusal(call(way, target))).toContain('private')
    expect([remote.seen.length, remote.sockets()]).toEqual([0, 0])
  })

  it('follows a redirect inside its origin and never one to another', async () => {
    const [remote, other] = [await upstream(), await upstream()]
    const way = egress(['127.0.0.1'])
    const headers = { authorization: 'Bearer canary' }
    remote.queue(answer(307, '', { location: '/next' }))
    expect((await call(way, remote.origin, { method: 'POST', body: 'x', headers })).status).toBe(200)
    expect(remote.seen.map(({ url, method }) => `${method} ${url}`)).toEqual(['POST /', 'POST /next'])
    for (const location of [other.origin, `${other.origin}/x`, 'http://169.254.169.254/', '//elsewhere.example/']) {
      remote.queue(answer(302, '', { location }))
      expect(await refusal(call(way, remote.origin, { headers }))).toContain('redirect to another origin')
    }
    expect(other.seen).toEqual([])
    remote.always(answer(302, '', { location: '/again' }))
    expect(await refusal(call(way, remote.origin))).toContain('more than 5 redirects')
    expect(await refusal(call(way, remote.origin, { method: 'POST', body: 'x' }))).toContain(
      'would change it into a GET',
    )
    // A POST that is answered with a page to look at was done; 301, 307 and 308 ask for the same elsewhere.
    const never = async (method: string, status: number, location: string) => {
      remote.queue(answer(status, '', { location }))
      return neverSent(await call(way, remote.origin, { method }).catch((error: unknown) => error))
    }
    expect([
      await never('POST', 303, '/made/1'),
      await never('POST', 302, `${other.origin}/x`),
      await never('POST', 301, '/made/1'),
      await never('POST', 307, `${other.origin}/x`),
      await never('GET', 302, `${other.origin}/x`),
    ]).toEqual([false, false, true, true, true])
    const shown = await call(way, remote.origin, { redirects: 'show' })
    expect([shown.status, shown.headers.get('location')]).toEqual([302, '/again'])
  })

  it('tells the other side when it is given up, and when enough of a body has come', async () => {
    const remote = await upstream()
    const way = egress(['127.0.0.1'])
    const stop = new AbortController()
    const stepped = steppedStream()
    remote.queue(stepped.script)
    const answered = await call(way, remote.origin, { signal: stop.signal })
    const reading = answered.text()
    stop.abort(new Error('given up'))
    await expect(reading).rejects.toThrow()
    await remote.seen[0]?.aborted
    const endless = steppedStream()
    remote.queue(endless.script)
    const second = await call(way, remote.origin)
    const read = readAtMost(second, 5)
    await endless.send('0123456789')
    expect(await read).toEqual({ body: new TextEncoder().encode('01234'), truncated: true })
    await remote.seen[1]?.aborted
  })

  it('is given up at once while a connection is still being made', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    open.unshift({ close: async () => void silent.close() })
    const { port } = silent.address() as AddressInfo
    const began = performance.now()
    const given = call(egress(['127.0.0.1']), `https://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(100) })
    await expect(given).rejects.toMatchObject({ name: 'TimeoutError' })
    expectWithin(performance.now() - began, 2000)
  })

  it('reads a compressed answer, and rejects when the connection breaks', async () => {
    const remote = await upstream()
    const way = egress(['127.0.0.1'])
    remote.queue(answer(200, gzipSync('plain words'), { 'content-encoding': 'gzip' }), reset)
    const answered = await call(way, remote.origin)
    expect([await answered.text(), answered.headers.get('content-encoding')]).toEqual(['plain words', null])
    await expect(call(way, remote.origin)).rejects.toThrow()
    expect(await way.problem(new URL('http://[fe80::1]/'))).toContain('link-local')
  })
})

describe('the way out of hosts that have only fetch', () => {
  it('refuses literal addresses and names of private networks, and shows redirects to the same guard', async () => {
    const asked: string[] = []
    const fetched = (async (target: URL, init: RequestInit) => {
      asked.push(`${String(target)} ${init.redirect}`)
      return new Response('', { status: 302, headers: { location: 'http://127.0.0.1/' } })
    }) as typeof fetch
    const way = platformEgress(outboundRule(), fetched)
    for (const text of ['http://10.0.0.1/', 'http://localhost/', 'http://db/', 'http://a.internal/']) {
      expect(await refusal(call(way, text))).toBeTruthy()
      expect(await way.problem(new URL(text))).toBeTruthy()
    }
    expect(asked).toEqual([])
    await expect(call(way, 'https://example.com/')).rejects.toThrow(OutboundDenied)
    expect(asked).toEqual(['https://example.com/ manual'])
  })
})

describe('the way out by a proxy', () => {
  const resolve: ResolveHost = async host => {
    const known: Record<string, string> = { 'far.example': '8.8.8.8', 'inner.example': '10.0.0.8' }
    if (known[host] !== undefined) return [{ address: known[host], family: 4 }]
    throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' })
  }
  async function byProxy(allowed: readonly string[] = []) {
    const remote = await upstream()
    const proxy = await forwardProxy({ port: Number(new URL(remote.origin).port) })
    open.unshift(proxy)
    const way = egress(allowed, resolve, outboundProxies({ http_proxy: proxy.origin, https_proxy: proxy.origin }))
    return { remote, proxy, way }
  }

  it('asks the proxy for a name that leads outside, and for one that only the proxy can resolve', async () => {
    const { way, proxy } = await byProxy()
    expect((await call(way, 'http://far.example/a')).status).toBe(200)
    expect((await call(way, 'http://unknown.example/b')).status).toBe(200)
    expect(proxy.asked).toEqual(['GET http://far.example/a', 'GET http://unknown.example/b'])
  })

  it('refuses what leads inside before the proxy hears of it, whatever is asked for', async () => {
    const { way, proxy } = await byProxy()
    for (const scheme of ['http', 'https']) {
      expect(await refusal(call(way, `${scheme}://inner.example/`))).toContain('leads to a private address')
      expect(await refusal(call(way, `${scheme}://10.0.0.8/`))).toContain('is a private address')
      expect(await refusal(call(way, `${scheme}://169.254.169.254/`))).toContain('metadata')
      expect(await refusal(call(way, `${scheme}://[::ffff:10.0.0.8]/`))).toContain('address')
      for (const name of ['wiki', 'wiki.internal', 'printer.local'])
        expect(await refusal(call(way, `${scheme}://${name}/`))).toContain('is a name of a private network')
    }
    expect(proxy.asked).toEqual([])
  })

  it('tells a 407 of the proxy from an answer, by either way and by the fetch of the host', async () => {
    const proxy = await forwardProxy({ port: 1, answer: () => 407 })
    open.unshift(proxy)
    const vars = { http_proxy: proxy.origin, https_proxy: proxy.origin }
    const way = egress([], resolve, outboundProxies(vars))
    for (const url of ['http://far.example/', 'https://far.example/']) {
      const words = /^the proxy that https?_proxy names asks for a name and password \(407\)/
      await expect(call(way, url)).rejects.toThrow(words)
      const fetched: unknown = await networkOf(vars)
        .fetch(url)
        .catch((error: unknown) => error)
      expect(proxyFaultIn(fetched)?.message).toMatch(words)
    }
  })

  it('says so when an address is configured', async () => {
    const { way } = await byProxy()
    expect(await way.problem(new URL('https://inner.example/'))).toContain('leads to a private address')
    expect(await way.problem(new URL('https://wiki/'))).toContain('is a name of a private network')
    expect(await way.problem(new URL('https://unknown.example/'))).toBeUndefined()
  })

  it('checks each call, also where the connection to the proxy is open already', async () => {
    const answers = ['8.8.8.8', '10.0.0.1']
    const { way: _, proxy } = await byProxy()
    const turning: ResolveHost = async () => [{ address: answers.shift()!, family: 4 }]
    const way = egress([], turning, outboundProxies({ http_proxy: proxy.origin }))
    expect((await call(way, 'http://turning.example/')).status).toBe(200)
    expect(await refusal(call(way, 'http://turning.example/'))).toContain('leads to a private address')
    expect(proxy.asked).toHaveLength(1)
  })

  it('goes on where the name server says nothing', async () => {
    const { proxy } = await byProxy()
    const silent: ResolveHost = () => new Promise(() => undefined)
    const way = egress([], silent, outboundProxies({ http_proxy: proxy.origin }))
    expect((await call(way, 'http://far.example/')).status).toBe(200)
  })

  it('lets what the operator has opened go straight to this machine', async () => {
    const { way, proxy, remote } = await byProxy(['127.0.0.1'])
    expect((await call(way, remote.origin)).status).toBe(200)
    expect(proxy.asked).toEqual([])
  })
})
