import { expect, it } from 'vitest'
import { OutboundDenied, ProxyError } from './bounded-body.ts'
import { neverSent } from './never-sent.ts'

const failed = (code: string, syscall?: string) =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code, ...(syscall && { syscall }) }) })

it.each([
  ['ECONNREFUSED', 'connect', true],
  ['ENOTFOUND', 'getaddrinfo', true],
  ['EHOSTUNREACH', 'connect', true],
  ['UND_ERR_CONNECT_TIMEOUT', undefined, true],
  ['CERT_HAS_EXPIRED', undefined, true],
  ['EMFILE', 'connect', true],
  ['EADDRNOTAVAIL', 'connect', true],
  ['ETIMEDOUT', 'connect', true],
  ['ETIMEDOUT', 'read', false],
  ['EHOSTUNREACH', 'read', false],
  ['ENETUNREACH', 'write', false],
  ['ECONNRESET', 'read', false],
  ['UND_ERR_SOCKET', undefined, false],
])('%s of %s: never sent is %s', (code, syscall, is) => expect(neverSent(failed(code, syscall))).toBe(is))

it('knows what a rule or a proxy kept from leaving', () => {
  expect(neverSent(new TypeError('fetch failed', { cause: new OutboundDenied('not that address') }))).toBe(true)
  expect(neverSent(new TypeError('fetch failed', { cause: new ProxyError('the proxy refuses it') }))).toBe(true)
})

it('knows a name of which no address took the connection', () => {
  const every = (...syscalls: string[]) => new AggregateError(syscalls.map(syscall => failed('ECONNRESET', syscall)))
  expect(neverSent(new AggregateError([failed('ECONNREFUSED'), failed('ENETUNREACH')]))).toBe(true)
  expect(neverSent(new AggregateError([failed('ECONNREFUSED'), failed('ECONNRESET')]))).toBe(false)
  expect(neverSent(every('connect', 'connect'))).toBe(true)
  expect(neverSent(every('connect', 'read'))).toBe(false)
})

it('ends where an error names itself as its cause', () => {
  const error = new Error('again')
  error.cause = error
  expect(neverSent(error)).toBe(false)
})
