import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { answer, scriptedUpstream } from '../upstream/scripted.ts'

const here = await sqldAvailable()

describe.runIf(here)('a router whose store is away', () => {
  let sqld: Sqld
  beforeAll(async () => {
    sqld = await startSqld()
  })
  afterAll(async () => {
    await sqld?.stop()
  })

  it('goes on passing calls, says of its own endpoints that it is the store, and answers them again once that is back', async () => {
    const upstream = await scriptedUpstream()
    upstream.always(answer(200, '{"id":"msg_1","content":[]}'))
    const router = await serveRouter({
      ROUTER_BIND: '127.0.0.1:0',
      ROUTER_DB: sqld.primaryUrl,
      ROUTER_UPSTREAM_MESSAGES: upstream.origin,
      ROUTER_DRAIN_SECONDS: '0',
      RUST_LOG: 'off',
    })
    const listed = async () => {
      const answer = await fetch(`${router.origin}/-/traces`, { headers: { authorization: 'Bearer key' } })
      return { status: answer.status, after: answer.headers.get('retry-after'), text: await answer.text() }
    }
    const called = () => fetch(`${router.origin}/v1/messages`, { method: 'POST', body: '{"model":"m"}' })
    try {
      expect((await listed()).status).toBe(200)
      await sqld.down()
      expect((await called()).status).toBe(200)
      const refused = await listed()
      expect(refused).toMatchObject({ status: 503, after: '5' })
      expect(refused.text).toContain('the store does not answer')
      await sqld.back()
      await expect.poll(async () => (await listed()).status, { timeout: 15_000 }).toBe(200)
    } finally {
      await router.close()
      await upstream.close()
    }
  })
})
