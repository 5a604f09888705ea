import { connect } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runtimeEndpoints } from '../../shared/wire/runtime/endpoints.ts'
import { type DashboardFixture, dashboardFixture, OWNER } from './dashboard-fixture.ts'

const FORM = 'application/x-www-form-urlencoded'
const LIMIT = 32_768
const PIECE = Buffer.alloc(65_536, 'x')
const MEGABYTE = 1024 * 1024

let fixture: DashboardFixture
let key: string
beforeAll(async () => {
  fixture = await dashboardFixture({ PLATFORM_MAX_BODY_BYTES: String(LIMIT) })
  key = await fixture.setUp()
})
afterAll(() => fixture.close())

/** Begins a body without a length, sends up to `size` bytes of it and never ends it. */
async function unended(method: string, path: string, headers: Record<string, string>, size: number) {
  const { hostname, port, host } = new URL(fixture.origin)
  const socket = connect(Number(port), hostname)
  // The service may be done with the connection while there is still something to send.
  socket.on('error', () => undefined)
  const ended = new Promise<void>(resolve => socket.once('close', () => resolve()))
  let text = ''
  const answered = new Promise<void>(resolve => {
    socket.on('data', piece => {
      text += String(piece)
      if (text.includes('\r\n\r\n')) resolve()
    })
  })
  const head = { host, 'transfer-encoding': 'chunked', ...headers }
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  let sent = 0
  while (sent < size && !socket.destroyed) {
    const piece = PIECE.subarray(0, Math.min(size - sent, PIECE.length))
    sent += piece.length
    socket.write(`${piece.length.toString(16)}\r\n`)
    socket.write(piece)
    if (!socket.write('\r\n')) await Promise.race([new Promise(resolve => socket.once('drain', resolve)), ended])
  }
  await Promise.race([answered, ended])
  return {
    status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]),
    sent,
    /** All that came until the service ended the connection. */
    async whole() {
      await ended
      return text
    },
    leave: () => socket.destroy(),
  }
}

it.each(['/login', '/logout'])('%s reads a form no further than its limit, without a key', async path => {
  const little = await unended('POST', path, { 'content-type': FORM }, 16_385)
  expect(little.status).toBe(413)
  expect(await little.whole()).toContain(
    '{"error":"the body is larger than the limit of 16384 bytes","code":"payload_too_large"}',
  )
  const much = await unended('POST', path, { 'content-type': FORM }, 64 * MEGABYTE)
  // A client that goes on sending may be cut before it has read the answer.
  expect([413, Number.NaN]).toContain(much.status)
  await much.whole()
  // What the kernel's buffers take.
  expect(much.sent).toBeLessThan(16 * MEGABYTE)
})

it('no operation waits for the end of a body, with a key or without one', async () => {
  const pages = ['/login', '/logout', '/ui/manifest/check', '/ui/openapi/look']
  const operations = [
    ...runtimeEndpoints.filter(({ method }) => method !== 'GET').map(({ method, path }) => ({ method, path })),
    ...pages.map(path => ({ method: 'POST', path })),
  ]
  expect(operations.length).toBeGreaterThan(50)
  for (const { method, path } of operations) {
    const at = path.replaceAll(/\{\w+\}/g, '01900000-0000-7000-8000-000000000000')
    const type = path.startsWith('/log') ? FORM : 'application/json'
    const headers = { 'content-type': type }
    for (const given of [headers, { ...headers, authorization: `Bearer ${key}` }]) {
      const { status, leave } = await unended(method, at, given, 2 * LIMIT)
      leave()
      expect([400, 401, 404, 413], `${method} ${path}`).toContain(status)
    }
  }
})

it('a form without a length that is small enough logs in as ever', async () => {
  const form = await fetch(`${fixture.origin}/login`)
  const csrf = /name="csrf" value="([\w-]+)"/.exec(await form.text())![1]!
  const cookie = form.headers.getSetCookie().map(one => one.split(';', 1)[0]!)
  const fields = new URLSearchParams({ csrf, email: OWNER.email, password: OWNER.password })
  const answer = await fetch(`${fixture.origin}/login`, {
    method: 'POST',
    headers: { 'content-type': FORM, cookie: cookie.join('; ') },
    body: new Blob([String(fields)]).stream(),
    duplex: 'half',
    redirect: 'manual',
  } as RequestInit)
  expect([answer.status, answer.headers.get('location')]).toEqual([303, './'])
  expect(answer.headers.getSetCookie().join()).toContain('wb_session=')
})
