import { type AddressInfo, createServer, type Server } from 'node:net'
import { egressProxy } from '../../../node-agent/egress/egress-proxy.ts'
import { readAllowEntry } from '../../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../../shared/http/outbound/outbound-rule.ts'
import type { Attack, Attempt } from '../attempt.ts'
import { raw, statuses } from '../raw.ts'

/** A server that keeps the bytes that come, and answers each request with a fixed text. */
async function recorder(port: number, address: string, says: string) {
  let heard = ''
  const server = createServer(socket => {
    socket.on('error', () => undefined)
    socket.on('data', piece => {
      heard += piece.toString('latin1')
      socket.write(says)
    })
  })
  await new Promise<void>((done, failed) => server.on('error', failed).listen(port, address, done))
  return { server, port: portOf(server), heard: () => heard }
}

const portOf = (server: Server) => (server.address() as AddressInfo).port
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

interface Way {
  /** Where the rules lead: GET and CONNECT to the first name, GET alone to the second. */
  port: number
  /** A service of the machine that no rule names. */
  inner: number
}

/** What a guest sends through a proxy of its own, and what came out at the other side. */
async function through(bytes: Bytes, { says = OK, quietMs = 200 } = {}) {
  const remote = await recorder(0, '127.0.0.1', says)
  const inner = await recorder(0, '127.0.0.1', OK)
  /** The same port at another address of this machine, for a name that moves there. */
  const moved = await recorder(remote.port, '127.0.0.2', OK)
  const decisions: { allowed: boolean; method: string }[] = []
  const ports = [remote.port]
  const names = ['far.example', 'inner.example', 'meta.example', 'six.example', 'none.example', 'moves.example']
  let looks = 0
  const addresses: Record<string, string> = {
    'inner.example': '10.0.0.8',
    'meta.example': '169.254.169.254',
    'six.example': 'fd00::1',
    'none.example': '0.0.0.0',
  }
  const server = createServer(
    egressProxy({
      egress: {
        rules: [
          ...names.map(host => ({ host, ports })),
          { host: 'get.example', ports, methods: ['GET'] },
          // The manifest names what the operator keeps closed.
          ...['127.0.0.1', 'localhost', '[::1]'].map(host => ({ host, ports: [inner.port] })),
        ],
        decided: async decision => void decisions.push(decision),
      },
      rule: outboundRule([readAllowEntry(`127.0.0.1:${remote.port}`)!]),
      async resolve(host) {
        const address = host === 'moves.example' && looks++ > 0 ? '127.0.0.2' : (addresses[host] ?? '127.0.0.1')
        return [{ address, family: address.includes(':') ? 6 : 4 }]
      },
      connectMs: 1000,
    }),
  )
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  try {
    const got = await raw(
      `http://127.0.0.1:${portOf(server)}`,
      bytes({ port: remote.port, inner: inner.port }),
      quietMs,
    )
    return { got, heard: remote.heard(), inner: inner.heard() + moved.heard(), decisions, port: remote.port }
  } finally {
    for (const one of [server, remote.server, inner.server, moved.server]) one.close()
  }
}

/** The requests in some bytes as a strict server reads them: a length or chunks say where each ends. */
export function requestsIn(bytes: string): { line: string; head: string }[] {
  const end = bytes.indexOf('\r\n\r\n')
  if (bytes === '') return []
  if (end < 0) return [{ line: bytes.split('\r\n', 1)[0] ?? '', head: bytes }]
  const head = bytes.slice(0, end)
  const rest = bytes.slice(end + 4)
  const line = head.split('\r\n', 1)[0] ?? ''
  let length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0)
  if (/^transfer-encoding: *chunked$/im.test(head)) {
    const last = /(?:^|\r\n)0\r\n(?:[^\r\n]+\r\n)*\r\n/.exec(rest)
    length = last ? last.index + last[0].length : rest.length
  }
  return [{ line, head }, ...requestsIn(rest.slice(length))]
}

type Bytes = (way: Way) => string | readonly string[]

const HIDDEN = 'POST /SMUGGLED HTTP/1.1\r\nhost: get.example\r\ncontent-length: 0\r\n\r\n'
const CHUNKS = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`
const LENGTH = `content-length: ${HIDDEN.length}`
const get =
  (
    lines: readonly string[],
    body = '',
    target = (port: number) => `http://get.example:${port}/`,
    host = 'get.example',
  ): Bytes =>
  ({ port }) =>
    `${[`GET ${target(port)} HTTP/1.1`, `host: ${host}`, ...lines].join('\r\n')}\r\n\r\n${body}`
const to =
  (target: (way: Way) => string, method = 'GET'): Bytes =>
  way =>
    `${method} ${target(way)} HTTP/1.1\r\nhost: far.example\r\n\r\n`
const tunnel =
  (authority: (way: Way) => string): Bytes =>
  way => [`CONNECT ${authority(way)} HTTP/1.1\r\nhost: far.example\r\n\r\n`, HIDDEN]

/** The bytes of a text, one in each character. */
const utf8 = (text: string) => Buffer.from(text).toString('latin1')

/** What hides a second request, or where one ends. */
const BODIES: Record<string, Bytes> = {
  'a second request as the body of a GET': get([LENGTH], HIDDEN),
  'a second request in the chunks of a GET': get(['transfer-encoding: chunked'], CHUNKS),
  'a second request without any length': get([], HIDDEN),
  'a length that belongs to the hop': get([LENGTH, 'connection: content-length'], HIDDEN),
  'chunks that belong to the hop': get(['transfer-encoding: chunked', 'connection: transfer-encoding'], CHUNKS),
  'a length and chunks': get([LENGTH, 'transfer-encoding: chunked'], CHUNKS),
  'a length twice': get([LENGTH, 'content-length: 0'], HIDDEN),
  'the same length twice': get([LENGTH, LENGTH], HIDDEN),
  'a list of lengths': get([`${LENGTH}, 0`], HIDDEN),
  'a length with a sign': get([`content-length: +${HIDDEN.length}`], HIDDEN),
  'a length in hex': get([`content-length: 0x${HIDDEN.length.toString(16)}`], HIDDEN),
  'two codings': get(['transfer-encoding: gzip, chunked'], CHUNKS),
  'chunked that is not the last': get(['transfer-encoding: chunked, identity'], CHUNKS),
  'chunked twice': get(['transfer-encoding: chunked', 'transfer-encoding: chunked'], CHUNKS),
  'a coding with a letter before it': get([LENGTH, 'transfer-encoding: xchunked'], HIDDEN),
  'a coding with a vertical tab': get([LENGTH, 'transfer-encoding:\x0bchunked'], CHUNKS),
  'a coding with a space before the colon': get([LENGTH, 'transfer-encoding : chunked'], CHUNKS),
  'a folded coding': get([LENGTH, 'transfer-encoding:', ' chunked'], CHUNKS),
  'a folded line': get(['x-a: b', ` ${LENGTH}`], HIDDEN),
  'a bare line feed in the head': get([`x-a: b\n${LENGTH}`], HIDDEN),
  'a bare carriage return in the head': get([`x-a: b\r${LENGTH}`], HIDDEN),
  'bare line feeds throughout': way => get([LENGTH])(way).toString().replaceAll('\r', '') + HIDDEN,
  'a null in a header': get([`x-a: b\0${LENGTH}`], HIDDEN),
  'bytes above 0x7f in a value': get([`x-a: \x80\xff${utf8('\u010d\u010a')}`], HIDDEN),
  'bytes above 0x7f in a name': get([`x-\xe9: b`, LENGTH], HIDDEN),
  'a second line in the bytes above 0x7f of the target': to(
    ({ port }) => `http://get.example:${port}/${utf8('\u010d\u010a')}${LENGTH}`,
  ),
  'an extension of a chunk with a line feed': get(['transfer-encoding: chunked'], `1;a=\nx\r\n0\r\n\r\n${HIDDEN}`),
  'an extension of a chunk': get(
    ['transfer-encoding: chunked'],
    `${HIDDEN.length.toString(16)};a="\r\n${HIDDEN}\r\n0\r\n\r\n`,
  ),
  'a size of a chunk that overflows': get(
    ['transfer-encoding: chunked'],
    `ffffffffffffffffff\r\n${HIDDEN}\r\n0\r\n\r\n`,
  ),
  'a size of a chunk with a sign': get(['transfer-encoding: chunked'], `-1\r\n${HIDDEN}\r\n0\r\n\r\n`),
  'a size of a chunk with a prefix': get(['transfer-encoding: chunked'], `0x5\r\nhello\r\n0\r\n\r\n${HIDDEN}`),
  'a trailer that is a length': get(
    ['transfer-encoding: chunked', 'trailer: content-length'],
    `1\r\nx\r\n0\r\n${LENGTH}\r\n\r\n${HIDDEN}`,
  ),
  'a trailer that is a host': get(['transfer-encoding: chunked'], `1\r\nx\r\n0\r\nhost: inner.example\r\n\r\n`),
  'an upgrade': get(['connection: upgrade', 'upgrade: websocket', 'sec-websocket-key: x'], HIDDEN),
  'an upgrade to HTTP/2': get(
    ['connection: upgrade, http2-settings', 'upgrade: h2c', 'http2-settings: AAMAAABk'],
    HIDDEN,
  ),
  'an expectation': get(['expect: 100-continue', LENGTH], HIDDEN),
  'HTTP/1.0 with chunks': way =>
    get(['transfer-encoding: chunked'], CHUNKS)(way).toString().replace('HTTP/1.1', 'HTTP/1.0'),
  'HTTP/0.9': ({ port }) => `GET http://get.example:${port}/\r\n\r\n${HIDDEN}`,
  'the preface of HTTP/2': () => `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${HIDDEN}`,
  'two requests in one write, the second beyond the rule': way =>
    `${get([])(way)}POST http://get.example:${way.port}/SMUGGLED HTTP/1.1\r\nhost: get.example\r\ncontent-length: 0\r\n\r\n`,
  'a method in lower case': to(({ port }) => `http://get.example:${port}/SMUGGLED`, 'post'),
  'another method by a header': get(['x-http-method-override: POST', 'x-method: POST']),
}

/** What leads elsewhere than the rule says. */
const PLACES: Record<string, Bytes> = {
  'another host in the header': get([], '', port => `http://get.example:${port}/`, 'inner.example'),
  'a host in the header twice': get(['host: inner.example']),
  'no host in the header': ({ port }) => `GET http://get.example:${port}/ HTTP/1.1\r\n\r\n`,
  'a path alone': get([], '', () => '/'),
  'the host of the header alone': ({ inner }) => `GET / HTTP/1.1\r\nhost: 127.0.0.1:${inner}\r\n\r\n`,
  'a host that is not on the list': to(({ inner }) => `http://evil.example:${inner}/`),
  'another port of a host on the list': to(({ inner }) => `http://far.example:${inner}/`),
  'a user in front of another host': to(({ port, inner }) => `http://far.example:${port}@127.0.0.1:${inner}/`),
  'a backslash behind the host': to(({ port, inner }) => `http://127.0.0.1:${inner}\\@far.example:${port}/`),
  'an at sign that is escaped': to(({ port, inner }) => `http://far.example:${port}%40127.0.0.1:${inner}/`),
  'a fragment behind another host': to(({ port, inner }) => `http://127.0.0.1:${inner}/#@far.example:${port}/`),
  'a host with a null': to(({ inner }) => `http://far.example%00.127.0.0.1:${inner}/`),
  'a scheme of another kind': to(({ inner }) => `ftp://127.0.0.1:${inner}/`),
  'an address that is https': to(({ inner }) => `https://127.0.0.1:${inner}/`),
  ...Object.fromEntries(
    [
      '127.0.0.1',
      '127.1',
      '0x7f.1',
      '0x7f000001',
      '2130706433',
      '017700000001',
      '0177.0.0.1',
      '127.0.0.1.',
      '[::1]',
    ].map(ip => [`the address ${ip}`, to(({ inner }) => `http://${utf8(ip)}:${inner}/`)]),
  ),
  ...Object.fromEntries(
    [
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[64:ff9b::7f00:1]',
      '[::]',
      '0.0.0.0',
      '0',
      'localhost',
      'LOCALHOST.',
      '１２７.０.０.１',
      '①②⑦.0.0.1',
    ].map(ip => [`the address ${ip}`, to(({ inner }) => `http://${utf8(ip)}:${inner}/`)]),
  ),
  ...Object.fromEntries(
    ['inner.example', 'meta.example', 'six.example', 'none.example'].map(name => [
      `a name on the list that leads to an inner address: ${name}`,
      to(({ port }) => `http://${name}:${port}/`),
    ]),
  ),
  'a name that moves between two looks': way =>
    [
      to(({ port }) => `http://moves.example:${port}/`)(way),
      to(({ port }) => `http://moves.example:${port}/`)(way),
    ].flat(),
  'CONNECT to a host that is not on the list': tunnel(({ inner }) => `evil.example:${inner}`),
  'CONNECT to another port': tunnel(({ inner }) => `far.example:${inner}`),
  'CONNECT to a host with a rule for methods': tunnel(({ port }) => `get.example:${port}`),
  'CONNECT to a name that leads to an inner address': tunnel(({ port }) => `inner.example:${port}`),
  'CONNECT with a user': tunnel(({ port, inner }) => `far.example:${port}@127.0.0.1:${inner}`),
  'CONNECT with a path': tunnel(({ port, inner }) => `127.0.0.1:${inner}/@far.example:${port}`),
  'CONNECT to an address in another notation': tunnel(({ inner }) => `0x7f.1:${inner}`),
  'CONNECT to an address of version 6': tunnel(({ inner }) => `[::ffff:127.0.0.1]:${inner}`),
  'CONNECT without a port': tunnel(() => 'far.example'),
  'CONNECT to nothing': tunnel(() => ''),
}

const sent: Attempt[] = Object.entries({ ...BODIES, ...PLACES }).map(([name, bytes]) => ({
  name,
  async run() {
    const { heard, inner, decisions, port } = await through(bytes)
    if (inner !== '') return `a place that no rule opens heard ${JSON.stringify(inner.slice(0, 100))}`
    const requests = requestsIn(heard)
    const allowed = decisions.filter(one => one.allowed)
    if (requests.length > allowed.length)
      return `${requests.length} requests came of ${allowed.length} that were decided on`
    for (const { line, head } of requests) {
      if (!/^GET \/[^ ]* HTTP\/1\.1$/.test(line)) return `the far end heard ${JSON.stringify(line)}`
      const hosts = [...head.matchAll(/^host: *(.*)$/gim)].map(([, host]) => host)
      if (
        hosts.length !== 1 ||
        !/^(get|far|moves)\.example:\d+$/.test(hosts[0] ?? '') ||
        !hosts[0]?.endsWith(`:${port}`)
      )
        return `the far end heard for ${hosts.join()}`
      if (/^(upgrade|proxy-|trailer|te:)/im.test(head)) return 'what belongs to one hop went on'
    }
    return undefined
  },
}))

const ANSWERS: Record<string, string> = {
  'a switch of protocols that nobody asked for':
    'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nhello',
  'a second answer behind the first': `${OK}HTTP/1.1 200 OK\r\nx-second: yes\r\ncontent-length: 0\r\n\r\n`,
  'a length and chunks in an answer':
    'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  'a line end in a header of an answer': 'HTTP/1.1 200 OK\r\nx-a: b\rx-second: yes\r\ncontent-length: 0\r\n\r\n',
  'a thousand interim answers': `${'HTTP/1.1 103 Early\r\n\r\n'.repeat(1000)}${OK}`,
  'an answer that is none': 'hello\r\n\r\n',
}

const answers: Attempt[] = Object.entries(ANSWERS).map(([name, says]) => ({
  name,
  async run() {
    const { got } = await through(get([]), { says })
    if (/^x-second:/im.test(got)) return 'what the first answer does not hold was passed on'
    const finals = statuses(got).filter(status => status >= 200)
    return finals.length === 1 ? undefined : `the guest had ${finals.length} answers`
  },
}))

/** Without it, nothing would come out of a proxy that does not work at all. */
const control: Attempt = {
  name: 'what the rules open passes',
  async run() {
    const called = await through(get([]), { quietMs: 1500 })
    const tunnelled = await through(
      tunnel(({ port }) => `far.example:${port}`),
      { quietMs: 1500 },
    )
    const arrived = [requestsIn(called.heard)[0]?.line, requestsIn(tunnelled.heard)[0]?.line]
    const whole = statuses(called.got)[0] === 200 && statuses(tunnelled.got).join() === '200,200'
    return whole && arrived.join() === 'GET / HTTP/1.1,POST /SMUGGLED HTTP/1.1'
      ? undefined
      : `what arrived is ${arrived.join()}`
  },
}

export const egress: readonly Attack[] = [{ name: 'egress of a sandbox', attempts: [control, ...sent, ...answers] }]
