import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Api, api, KEY } from './api.ts'

let on: Api
beforeEach(async () => {
  on = await api({ limits: { maxConcurrent: 0 } })
  await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: {} })
})
afterEach(() => on.close())

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`

async function send(path: string, body: string) {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const answer = await on.runtime.fetch(new Request(`http://localhost${path}`, { method: 'POST', headers, body }))
  return { status: answer.status, said: (await answer.json()) as { code?: string; error?: string } }
}

it.each([
  ['/v1/runs', (deep: string) => `{"agentName":"worker","input":{"deep":${deep}}}`],
  ['/v1/runs/forecast', (deep: string) => `{"agentName":"worker","input":{"deep":${deep}}}`],
  ['/v1/agents', (deep: string) => `{"name":"other","manifest":{"outputSchema":{"x":${deep}}}}`],
  [
    '/v1/schedules',
    (deep: string) => `{"name":"s","agentName":"worker","cronExpr":"0 0 * * *","config":{"input":{"deep":${deep}}}}`,
  ],
])('a body that is nested too deep is the fault of who sent it: %s', async (path, body) => {
  for (const levels of [501, 5000, 100_000]) {
    const { status, said } = await send(path, body(nested(levels)))
    expect([status, said.code]).toEqual([400, 'bad_json'])
    expect(said.error).toMatch(/nested too deep/)
  }
})

it('takes what is nested less deep', async () => {
  const body = (text: string) => `{"agentName":"worker","input":{"deep":${text}}}`
  expect((await send('/v1/runs', body(nested(490)))).status).toBe(201)
  expect((await send('/v1/runs', body(JSON.stringify('['.repeat(5000))))).status).toBe(201)
})

it('takes null for a body that may be left out, as generated clients send it', async () => {
  const id = await on.json<{ id: string }>(201, 'POST', '/v1/runs', { agentName: 'worker' }).then(run => run.id)
  expect((await send(`/v1/runs/${id}/cancel`, 'null')).status).toBe(200)
  expect((await send('/v1/runs', 'null')).said.code).toBe('validation_failed')
})
