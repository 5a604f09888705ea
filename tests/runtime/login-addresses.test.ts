import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type RuntimeService, serveRuntime } from '../../runtime/host/node.ts'

let folder: string
let service: RuntimeService | undefined
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-logins-'))
})
afterEach(async () => {
  await service?.close()
  await rm(folder, { recursive: true, force: true })
})

let tried = 0
async function tryToLogIn(localAddress: string, forwardedFor: string): Promise<number> {
  tried += 1
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': forwardedFor }
  const sent = request(`${service!.origin}/auth/login`, { method: 'POST', localAddress, headers })
  sent.end(JSON.stringify({ email: `person-${tried}@example.com`, password: 'wrong-password-1' }))
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  answer.resume()
  return answer.statusCode!
}

it('tries to log in are counted by the address of the connection, or that which a trusted proxy reports', async () => {
  service = await serveRuntime({
    PLATFORM_BIND: '127.0.0.1:0',
    PLATFORM_DATA_DIR: folder,
    PLATFORM_LOG_LEVEL: 'off',
    PLATFORM_TRUSTED_PROXIES: '127.0.0.1',
  })
  for (let n = 0; n < 10; n++) expect(await tryToLogIn('127.0.0.1', `203.0.113.${n}, 192.0.2.1`)).toBe(401)
  expect(await tryToLogIn('127.0.0.1', '192.0.2.1')).toBe(429)
  expect(await tryToLogIn('127.0.0.1', '192.0.2.2')).toBe(401)
  // Who has one IPv6 address has its network of /64.
  for (let n = 0; n < 10; n++) expect(await tryToLogIn('127.0.0.1', `2001:db8:1:2:${n}::1`)).toBe(401)
  expect(await tryToLogIn('127.0.0.1', '2001:db8:1:2:ffff::1')).toBe(429)
  expect(await tryToLogIn('127.0.0.1', '2001:db8:1:3::1')).toBe(401)
  expect(await tryToLogIn('127.0.0.1', '::ffff:192.0.2.1')).toBe(429)
  // From elsewhere the header counts for nothing.
  expect(await tryToLogIn('127.0.0.2', '192.0.2.1')).toBe(401)
})
