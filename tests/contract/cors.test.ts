import { expect, it } from 'vitest'
import { matrix, PAGE_ORIGIN, RUNTIME_KEY } from '../matrix.ts'

const preflight = (origin: string, method = 'POST') => ({
  method: 'OPTIONS',
  headers: {
    origin,
    'access-control-request-method': method,
    'access-control-request-headers': 'authorization,content-type',
  },
})

const corsHeaders = (answer: Response) =>
  [...answer.headers].filter(([name]) => name.startsWith('access-control-')).map(([name]) => name)

matrix('runtime', call => {
  it('answers the preflight of a page in the list without a key', async () => {
    const answer = await call('/v1/runs', preflight(PAGE_ORIGIN))
    expect([answer.status, await answer.text()]).toEqual([204, ''])
    expect(answer.headers.get('access-control-allow-origin')).toBe(PAGE_ORIGIN)
    expect(answer.headers.get('access-control-allow-methods')).toContain('POST')
    expect(answer.headers.get('access-control-allow-headers')).toMatch(/authorization.*content-type.*idempotency-key/)
    expect(answer.headers.get('vary')).toMatch(/\borigin\b/i)
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
  })

  it('lets such a page read answers, refusals and streams, and asks it for a key', async () => {
    const headers = { origin: PAGE_ORIGIN, authorization: `Bearer ${RUNTIME_KEY}`, 'content-type': 'application/json' }
    for (const [path, status] of [
      ['/v1/agents', 200],
      ['/v1/agents?limit=0', 400],
      ['/v1/agents/nobody', 404],
      ['/v1/nothing', 404],
    ] as const) {
      const answer = await call(path, { headers })
      expect([path, answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([
        path,
        status,
        PAGE_ORIGIN,
      ])
      expect(answer.headers.get('access-control-expose-headers')).toContain('link')
      expect(answer.headers.get('vary')).toMatch(/\borigin\b/i)
    }
    const without = await call('/v1/agents', { headers: { origin: PAGE_ORIGIN } })
    expect([without.status, without.headers.get('access-control-allow-origin')]).toEqual([401, PAGE_ORIGIN])
    const made = await call('/v1/agents', { method: 'POST', headers, body: '{"name":"paged"}' })
    expect(made.status).toBe(201)
    const { id } = (await (
      await call('/v1/runs', { method: 'POST', headers, body: '{"agentName":"paged"}' })
    ).json()) as { id: string }
    const stream = await call(`/v1/runs/${id}/events`, { headers })
    expect(stream.headers.get('access-control-allow-origin')).toBe(PAGE_ORIGIN)
    await stream.body?.cancel()
  })

  it('tells no other page anything, and nobody of what goes by a cookie', async () => {
    for (const origin of ['https://evil.example.com', `${PAGE_ORIGIN}.evil.com`, 'null', 'http://app.example.com']) {
      expect(corsHeaders(await call('/v1/runs', preflight(origin)))).toEqual([])
      const answer = await call('/v1/agents', { headers: { origin, authorization: `Bearer ${RUNTIME_KEY}` } })
      expect([answer.status, corsHeaders(answer)]).toEqual([200, []])
      expect(answer.headers.get('vary')).toMatch(/\borigin\b/i)
    }
    for (const path of ['/auth/login', '/ui/api/v1/agents']) {
      expect(corsHeaders(await call(path, preflight(PAGE_ORIGIN)))).toEqual([])
      expect(corsHeaders(await call(path, { headers: { origin: PAGE_ORIGIN } }))).toEqual([])
    }
  })
})
