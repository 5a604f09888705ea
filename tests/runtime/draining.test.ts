import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { serveRuntime } from '../../runtime/host/node.ts'
import { scriptedUpstream } from '../upstream/scripted.ts'
import { type Api, api, KEY } from './api.ts'

/** A start that the service had accepted when it was stopped; `hops` is how far it had come. */
async function stoppedAfter(hops: number): Promise<string> {
  const here: Api = await api()
  await here.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: {} })
  const body = { agentName: 'worker', input: { prompt: 'hi' } }
  const answer = here.call('POST', '/v1/runs', body, { 'idempotency-key': `k${hops}` })
  for (let hop = 0; hop < hops; hop++) await null
  await here.close()
  const { status } = await answer
  return status === 201 || status === 503 ? 'told' : `${hops} hops: ${status} ${await (await answer).text()}`
}

describe('a service that is told to stop', () => {
  it('finishes every start that it had taken, or refuses it with a word for the next instance', async () => {
    const told = new Set<string>()
    for (let hops = 0; hops < 120; hops += 3) told.add(await stoppedAfter(hops))
    expect([...told]).toEqual(['told'])
  })

  it('refuses what comes later, and says for how long', async () => {
    const here = await api()
    await here.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: {} })
    here.runtime.drain()
    const answer = await here.call('POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'hi' } })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
    await here.close()
  })

  it('answers on its socket until the open steps are finished: reads, and a refusal of new work', async () => {
    const remote = await scriptedUpstream()
    onTestFinished(() => remote.close())
    const asked = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    remote.always(async response => {
      asked.resolve()
      await go.promise
      response.writeHead(200, { 'content-type': 'application/json' })
      const message = { role: 'assistant', content: 'done' }
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      response.end(JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
    })
    const folder = await mkdtemp(join(tmpdir(), 'waybill-draining-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const service = await serveRuntime({
      PLATFORM_BIND: '127.0.0.1:0',
      PLATFORM_DATA_DIR: folder,
      PLATFORM_BOOTSTRAP_KEY: KEY,
      PLATFORM_LOG_LEVEL: 'error',
      PLATFORM_OUTBOUND_ALLOW: new URL(remote.origin).host,
      PLATFORM_PROVIDER_OPENAI_COMPATIBLE_BASE_URL: remote.origin,
      PLATFORM_PROVIDER_OPENAI_COMPATIBLE_API_KEY: 'k',
    })
    const call = async (method: string, path: string, body?: object) => {
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
      const answer = await fetch(service.origin + path, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      })
      const { status } = answer
      return { status, headers: answer.headers, body: (await answer.json()) as { id: string; code?: string } }
    }
    await call('POST', '/v1/agents', { name: 'worker', manifest: { model: 'openai-compatible/m' } })
    const work = { agentName: 'worker', input: { prompt: 'hi' } }
    const { id } = (await call('POST', '/v1/runs', work)).body
    await asked.promise
    const closed = service.close()
    for (const [path, body] of [
      ['/v1/runs', work],
      ['/v1/agents', { name: 'other', manifest: {} }],
    ] as const) {
      const refused = await call('POST', path, body)
      const { headers } = refused
      expect([refused.status, refused.body.code, headers.get('retry-after'), headers.get('connection')]).toEqual([
        ...[503, 'draining', '5', 'close'],
      ])
    }
    const read = await call('GET', `/v1/runs/${id}`)
    expect([read.status, read.headers.get('connection')]).toEqual([200, 'close'])
    expect((await call('GET', '/readyz')).status).toBe(503)
    go.resolve()
    await closed
    await expect(fetch(service.origin)).rejects.toThrow()
  })
})
