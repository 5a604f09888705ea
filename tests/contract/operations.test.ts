import { expect, it } from 'vitest'
import { routerHealth, routerReadiness } from '../../shared/wire/router/health.ts'
import { healthz, readyz } from '../../shared/wire/runtime/health.ts'
import { type Call, METRICS_TOKEN, matrix, RUNTIME_KEY } from '../matrix.ts'

const authorization = { authorization: `Bearer ${METRICS_TOKEN}` }

function common(call: Call): void {
  it('answers HEAD where it answers GET', async () => {
    const answer = await call('/healthz', { method: 'HEAD' })
    expect([answer.status, await answer.text()]).toEqual([200, ''])
  })

  it('gives every answer a request id, and keeps a plain one of the caller', async () => {
    const own = await call('/healthz', { headers: { 'x-request-id': 'abc.DEF_1-2' } })
    expect(own.headers.get('x-request-id')).toBe('abc.DEF_1-2')
    for (const bad of ['with space', 'x'.repeat(65), '<script>']) {
      const made = await call('/nowhere', { headers: { 'x-request-id': bad } })
      expect(made.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    }
  })

  it('answers a browser at an unknown address with a page, and a program with JSON', async () => {
    const headers = { ...authorization, accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
    const page = await call('/no/such/<b>page', { headers })
    expect([page.status, page.headers.get('content-type')]).toEqual([404, expect.stringContaining('text/html')])
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    const text = await page.text()
    expect(text).toContain('There is no such page')
    expect(text).not.toContain('<b>page')
    for (const accept of ['*/*', 'application/json']) {
      const answer = await call('/no/such/page', { headers: { ...authorization, accept } })
      expect([answer.status, answer.headers.get('content-type')]).toEqual([
        404,
        expect.stringContaining('application/json'),
      ])
    }
  })

  it('serves metrics as Prometheus text', async () => {
    const answer = await call('/metrics', { headers: authorization })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(await answer.text()).toMatch(/_build_info\{version="\d+\.\d+\.\d+"\} 1\n/)
  })

  it('publishes only operations that it serves', async () => {
    const document = (await (await call('/openapi.json')).json()) as { openapi: string; paths: Record<string, object> }
    expect(document.openapi).toBe('3.1.0')
    expect(Object.keys(document.paths)).toContain('/healthz')
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const method of Object.keys(operations).map(name => name.toUpperCase())) {
        // An operation with an id is served, though the id that the document writes there names nothing.
        const headers = path.startsWith('/v1/') ? { authorization: `Bearer ${RUNTIME_KEY}` } : authorization
        const answer = await call(path, { method, headers })
        expect(await answer.text(), `${method} ${path}`).not.toMatch(/no such path|route not found/)
        if (!path.includes('{')) expect(answer.status, `${method} ${path}`).not.toBe(404)
      }
    }
  })
}

matrix('runtime', (call, announce) => {
  common(call)

  it('is an MCP server', async () => {
    const answer = await call('/mcp', {
      method: 'POST',
      headers: {
        authorization: `Bearer ${RUNTIME_KEY}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_agents' } }),
    })
    expect(await answer.json()).toMatchObject({ id: 1, result: { structuredContent: { items: [] } } })
  })

  it('answers health and readiness', async () => {
    expect(healthz.parse(await (await call('/healthz')).json()).status).toBe('ok')
    const answer = await call('/readyz')
    expect(answer.status).toBe(200)
    expect(readyz.parse(await answer.json())).toMatchObject({
      status: 'ready',
      checks: { database: 'ok', migrations: 'ok', masterKey: 'ok' },
    })
  })

  it('answers an unknown path and a wrong method with 404 and names both', async () => {
    for (const [method, path] of [
      ['GET', '/v1/nothing'],
      ['PATCH', '/v1/agents'],
      ['PATCH', '/healthz'],
    ] as const) {
      const answer = await call(path, { method, headers: { authorization: `Bearer ${RUNTIME_KEY}` } })
      expect(answer.status).toBe(404)
      expect(await answer.json()).toEqual({ error: `route not found: ${method} ${path}`, code: 'not_found' })
    }
  })

  it('serves the dashboard with what it loads', async () => {
    const page = await (await call('/setup')).text()
    const files = [...page.matchAll(/(?:src|href)="\.\/(ui\/files\/[\w.-]+)"/g)].map(([, path]) => path!)
    expect(files.length).toBeGreaterThan(2)
    for (const path of files) expect([path, (await call(`/${path}`)).status]).toEqual([path, 200])
  })

  it('refuses a body over 1 MiB before reading it', async () => {
    expect(await announce('/v1/runs', 1_048_577)).toEqual({
      status: 413,
      body: { error: 'the body is larger than the limit of 1048576 bytes', code: 'payload_too_large' },
    })
  })
})

matrix('router', (call, announce) => {
  common(call)

  it('answers health and readiness', async () => {
    expect(routerHealth.parse(await (await call('/healthz')).json()).status).toBe('ok')
    const answer = await call('/readyz')
    expect(answer.status).toBe(200)
    expect(routerReadiness.parse(await answer.json())).toMatchObject({ status: 'ready', checks: { store: 'ok' } })
  })

  it('answers an unknown path with 404', async () => {
    const answer = await call('/nothing')
    expect(answer.status).toBe(404)
    expect(await answer.json()).toEqual({ error: { type: 'not_found', message: 'no such path: /nothing' } })
  })

  it('answers a wrong method with 405 and names the right ones', async () => {
    const answer = await call('/healthz', { method: 'DELETE' })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect(await answer.json()).toMatchObject({ error: { type: 'method_not_allowed' } })
  })

  it('serves its panel, every file of it, and no other', async () => {
    const page = await call('/panel')
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=UTF-8'])
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'self';/)
    const files = [...(await page.text()).matchAll(/(?:href|src)="(panel\/[^"]+)"/g)].map(([, path]) => `/${path}`)
    expect(files).toContain('/panel/panel.js')
    for (const path of files) {
      const answer = await call(path)
      expect([path, answer.status, (await answer.text()) !== '']).toEqual([path, 200, true])
      expect(answer.headers.get('content-type')).toMatch(/^(?:text\/(?:javascript|css)|image\/svg|font\/woff2$)/)
    }
    for (const path of ['/panel/nothing.js', '/panel/__proto__', '/panel/constructor.js', '/panel/']) {
      expect((await call(path)).status, path).toBe(404)
    }
    expect((await call('/panel', { method: 'POST' })).status).toBe(405)
  })

  it('refuses a body over 32 MiB before reading it, in the shape of the dialect', async () => {
    expect(await announce('/v1/messages', 33_554_433)).toMatchObject({
      status: 413,
      body: { type: 'error', error: { type: 'request_too_large' } },
    })
    expect(await announce('/v1/chat/completions', 33_554_433)).toMatchObject({
      status: 413,
      body: { error: { code: 'request_too_large', param: null } },
    })
  })
})
