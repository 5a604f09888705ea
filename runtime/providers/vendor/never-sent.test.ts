import { expect, it } from 'vitest'
import { neverSent } from '../../../shared/http/outbound/never-sent.ts'
import { neverSent as neverReached } from './vendor-failure.ts'

const failed = (code: string, syscall?: string) =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code, ...(syscall && { syscall }) }) })

it.each([
  ['ECONNREFUSED', 'connect', true],
  ['ENOTFOUND', 'getaddrinfo', true],
  ['EHOSTUNREACH', 'connect', true],
  ['UND_ERR_CONNECT_TIMEOUT', undefined, true],
  ['EHOSTUNREACH', 'read', false],
  ['ENETUNREACH', 'write', false],
  ['ECONNRESET', 'read', false],
  ['UND_ERR_SOCKET', undefined, false],
])('%s of %s: never sent is %s', (code, syscall, is) => {
  expect([neverSent(failed(code, syscall)), neverReached(failed(code, syscall))]).toEqual([is, is])
})
