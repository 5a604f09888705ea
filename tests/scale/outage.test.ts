import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { nodeEgress } from '../../shared/host/node-egress.ts'
import { readAllowEntry } from '../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { type Api, api } from '../runtime/api.ts'
import { cluster } from './cluster.ts'

/** How long the primary is away; what has to hold for 20 s is tried for 3 s each time. */
const AWAY_MS = Number(process.env.WAYBILL_OUTAGE_MS || 3000)
const here = await sqldAvailable()

interface Told {
  status: number
  tookMs: number
  retryAfter: string | null
  body: { code?: string; id?: string; error?: string }
}

describe.runIf(here)('a primary that goes away and comes back', () => {
  let sqld: Sqld
  let group: Awaited<ReturnType<typeof cluster>>
  beforeAll(async () => {
    sqld = await startSqld()
    group = await cluster(sqld.primaryUrl, 2, { PLATFORM_LEASE_TTL: '60s', PLATFORM_RECOVERY_INTERVAL: '30s' })
  })
  afterAll(async () => {
    await group?.close()
    await sqld?.stop()
  })

  async function ask(method: string, path: string, body?: object, key?: string): Promise<Told> {
    const { origin } = group.instances[Math.floor(Math.random() * 2)]!
    const began = performance.now()
    const answer = await fetch(origin + path, {
      method,
      headers: group.headers(key),
      signal: AbortSignal.timeout(20_000),
      ...(body && { body: JSON.stringify(body) }),
    })
    const told = (await answer.json()) as Told['body']
    const tookMs = performance.now() - began
    return { status: answer.status, retryAfter: answer.headers.get('retry-after'), tookMs, body: told }
  }

  it('is answered with 503 and a time to come back, and nothing is lost or done twice', async () => {
    await ask('POST', '/v1/agents', { name: 'worker', manifest: { model: 'demo/echo', tools: ['wait'] } })
    const told: Told[] = []
    const ids = new Map<string, string>()
    let over = false
    let number = 0
    /** Starts runs, each until there is one. */
    async function client(): Promise<void> {
      while (!over) {
        const key = `run-${number++}`
        for (;;) {
          const input = { prompt: '/call*3 wait {"seconds":1}' }
          const made = await ask('POST', '/v1/runs', { agentName: 'worker', input }, key)
          told.push(made)
          if (made.status === 201 && made.body.id !== undefined) {
            ids.set(key, made.body.id)
            break
          }
          told.push(await ask('GET', '/v1/runs'))
          await new Promise(resolve => setTimeout(resolve, 200))
        }
        await new Promise(resolve => setTimeout(resolve, 150))
      }
    }
    const clients = [client(), client()]
    await new Promise(resolve => setTimeout(resolve, 1500))
    await sqld.down()
    const before = ids.size
    await new Promise(resolve => setTimeout(resolve, AWAY_MS))
    await sqld.back()
    const backAt = performance.now()
    await new Promise(resolve => setTimeout(resolve, 1000))
    over = true
    await Promise.all(clients)

    expect(before).toBeGreaterThan(3)
    const refused = told.filter(({ status }) => status >= 400)
    expect(refused.length).toBeGreaterThan(5)
    // A key whose first call was cut off is refused as such until its attempt is void.
    const kinds = new Set(refused.map(({ status, body: { code } }) => `${status} ${code}`))
    expect([...kinds].filter(kind => kind !== '409 idempotency_in_progress')).toEqual(['503 store_unavailable'])
    for (const { status, retryAfter } of refused) if (status === 503) expect(retryAfter).toBe('5')
    const slowest = Math.max(...told.map(({ tookMs }) => tookMs))
    expect(slowest).toBeLessThan(8000)

    expect(new Set(ids.values()).size).toBe(ids.size)
    for (const id of ids.values()) {
      await expect
        .poll(async () => ((await ask('GET', `/v1/runs/${id}`)).body as unknown as Run).status, { timeout: 30_000 })
        .toBe('succeeded')
    }
    const resumedMs = performance.now() - backAt
    const listed = (await ask('GET', '/v1/runs?limit=200')).body as unknown as Run[]
    expect(new Set(listed.map(({ id }) => id))).toEqual(new Set(ids.values()))
    console.log(
      `away ${AWAY_MS} ms: ${ids.size} runs, ${before} of them before; ${refused.length} refusals, the slowest answer after ` +
        `${Math.round(slowest)} ms; all ended ${Math.round(resumedMs)} ms after it was back`,
    )
    // The leases are of a minute: a process that waited for their end would be late.
    expect(resumedMs).toBeLessThan(25_000)
  }, 120_000)
})

describe.runIf(here)('a primary that is killed while models answer', () => {
  it.each([0, 1])(
    'loses no answer: %d of two control planes has the calls',
    async which => {
      const sqld = await startSqld()
      const { promise: answer, resolve } = Promise.withResolvers<void>()
      let asked = 0
      const provider = createServer(async (request, response) => {
        await text(request)
        asked++
        await answer
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(CHAT_STREAM)
      })
      await once(provider.listen(0, '127.0.0.1'), 'listening')
      const host = `127.0.0.1:${(provider.address() as AddressInfo).port}`
      const open: Api[] = []
      for (const owner of ['plane-0', 'plane-1']) {
        open.push(
          await api({
            ...{ url: sqld.primaryUrl, owner },
            egress: nodeEgress({ rule: outboundRule([readAllowEntry(host)!]) }),
            providers: [{ provider: 'openai', apiKey: 'sk-test', baseUrl: `http://${host}/v1` }],
          }),
        )
      }
      const on = open[which]!
      // One has a limit, whose keeper reads and writes for each call.
      for (const name of ['free', 'limited'])
        await on.json(201, 'POST', '/v1/agents', { name, manifest: { model: 'openai/gpt-4o-mini' } })
      await on.json(200, 'PUT', '/v1/agents/limited/budget', { maxCostUsdPerDay: 1 })
      const start = (agentName: string) => on.json<Run>(201, 'POST', '/v1/runs', { agentName, input: { prompt: 'hi' } })
      const runs = await Promise.all(['free', 'free', 'limited', 'limited'].map(start))
      await expect.poll(() => asked).toBe(runs.length)
      await sqld.down()
      resolve()
      await new Promise(again => setTimeout(again, AWAY_MS))
      await sqld.back()
      for (const { id } of runs) {
        const read = () => on.json<Run>(200, 'GET', `/v1/runs/${id}`)
        await expect
          .poll(async () => (await read().catch(() => undefined))?.status, { timeout: 30_000 })
          .toBe('succeeded')
        expect(await read()).toMatchObject({ tokensIn: 10, tokensOut: 5, output: { result: 'paid for' } })
      }
      expect(asked).toBe(runs.length)
      for (const one of open) await one.close()
      provider.closeAllConnections()
      provider.close()
      await sqld.stop()
    },
    60_000,
  )
})

const chunk = (more: object) =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o-mini', ...more })}\n\n`
const CHAT_STREAM = [
  chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: 'paid for' }, finish_reason: null }] }),
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
  chunk({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }),
  'data: [DONE]\n\n',
].join('')
