import { describe, expect, it } from 'vitest'
import { type Api, api } from './api.ts'

/** A start that the service had begun on when it was told to stop; `hops` is how far it had come. */
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
})
