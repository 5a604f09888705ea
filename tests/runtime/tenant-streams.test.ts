import { afterEach, expect, it } from 'vitest'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { type Api, api, KEY } from './api.ts'

let on: Api
afterEach(() => on?.close())

/** A tenant of its own with a run that waits, and a reader of that run's stream. */
async function tenantWithRun(name: string) {
  const tenant = await on.json<{ id: string }>(201, 'POST', '/v1/tenants', { name })
  const { rawKey } = await on.json<{ rawKey: string }>(201, 'POST', `/v1/tenants/${tenant.id}/api-keys`, { name })
  const headers = { authorization: `Bearer ${rawKey}` }
  await on.call('POST', '/v1/agents', { name: 'waits', manifest: { model: 'demo/echo', tools: ['wait'] } }, headers)
  const made = await on.call(
    'POST',
    '/v1/runs',
    { agentName: 'waits', input: { prompt: '/call wait {"seconds":600}' } },
    headers,
  )
  const { id } = (await made.json()) as Run
  return async () => {
    const answer = await on.call('GET', `/v1/runs/${id}/events`, undefined, headers)
    const reader = answer.body?.getReader()
    await reader?.read()
    return { answer, leave: () => reader?.cancel() }
  }
}

it('a tenant has so many event streams at most, and takes none of another one', async () => {
  on = await api({ maxTenantStreams: 3 })
  const [one, other] = [await tenantWithRun('one'), await tenantWithRun('other')]
  const held = [await one(), await one(), await one()]
  expect(held.map(({ answer }) => answer.status)).toEqual([200, 200, 200])

  const { answer } = await one()
  expect(answer.status).toBe(429)
  expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
  const elsewhere = await other()
  expect(elsewhere.answer.status).toBe(200)

  await held[0]?.leave()
  const again = await one()
  expect(again.answer.status).toBe(200)
  for (const { leave } of [...held.slice(1), elsewhere, again]) await leave()
  const metrics = await (await on.call('GET', '/metrics', undefined, { authorization: `Bearer ${KEY}` })).text()
  expect(metrics).toContain('waybill_sse_clients{stream="run"} 0')
})
