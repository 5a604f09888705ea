import { expect, it } from 'vitest'
import type { Overview } from '../../shared/wire/runtime/overview.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Session, TurnReply } from '../../shared/wire/runtime/session.ts'
import { eventually } from '../eventually.ts'
import { matrix, RUNTIME_KEY } from '../matrix.ts'
import { sseReader } from '../runtime/sse.ts'

matrix('runtime', call => {
  const send = (method: string, path: string, body?: unknown) =>
    call(path, {
      method,
      headers: { authorization: `Bearer ${RUNTIME_KEY}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })

  async function json<T>(status: number, method: string, path: string, body?: unknown): Promise<T> {
    const answer = await send(method, path, body)
    const text = await answer.text()
    expect(answer.status, `${method} ${path}: ${text}`).toBe(status)
    return JSON.parse(text) as T
  }

  async function agent(name: string): Promise<void> {
    await json(201, 'POST', '/v1/agents', { name, manifest: { model: 'demo/echo', tools: ['wait'] } })
  }

  const run = (agentName: string, prompt: string) =>
    json<Run>(201, 'POST', '/v1/runs', { agentName, input: { prompt } })

  async function stream(id: string): Promise<string[]> {
    const answer = await send('GET', `/v1/runs/${id}/events`)
    expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/)
    return (await sseReader(answer.body!).all()).map(({ event }) => event ?? '')
  }

  /** Looks on until there is nothing more to see, which is when the run has ended. */
  async function ended(id: string): Promise<Run> {
    await stream(id)
    return json<Run>(200, 'GET', `/v1/runs/${id}`)
  }

  it('executes a run to its end, tells it as events and signs a receipt that verifies', async () => {
    await agent('worker')
    const { id } = await run('worker', '/call*2 wait {"seconds":0}')
    const kinds = await stream(id)
    expect([kinds[0], kinds.at(-1)]).toEqual(['step_started', 'step_completed'])
    expect(await json<Run>(200, 'GET', `/v1/runs/${id}`)).toMatchObject({ status: 'succeeded' })
    const receipt = await json<Receipt>(200, 'GET', `/v1/runs/${id}/receipt`)
    const verdict = await json<{ valid: boolean }>(200, 'POST', '/v1/runs/receipts/verify', receipt)
    expect(verdict).toMatchObject({ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } })
  })

  it('finds runs by their words and labels', async () => {
    await agent('finder')
    const made = { agentName: 'finder', input: { prompt: 'About penguins' }, labels: { team: 'south' } }
    const { id } = await json<Run>(201, 'POST', '/v1/runs', made)
    await ended(id)
    for (const query of ['q=finder+sou', 'label=team:south', 'q=finder&label=team:south', `q=${id}`]) {
      const found = await json<Run[]>(200, 'GET', `/v1/runs?${query}`)
      expect([query, found.map(run => run.id)]).toEqual([query, [id]])
    }
    expect(await json<Run[]>(200, 'GET', '/v1/runs?q=finder+north')).toEqual([])
  })

  it('goes on by itself after a short wait, while somebody looks on', async () => {
    await agent('waiter')
    const { id } = await run('waiter', '/call wait {"seconds":1}')
    expect(await ended(id)).toMatchObject({ status: 'succeeded' })
  })

  it('executes runs that begin at the same moment, each to its own end', async () => {
    await agent('crowd')
    const runs = await Promise.all(
      Array.from({ length: 12 }, (_, number) => run('crowd', `/call wait {"seconds":0}\n${number}`)),
    )
    expect(new Set(runs.map(({ id }) => id)).size).toBe(12)
    const ends = await Promise.all(runs.map(async ({ id }) => (await ended(id)).status))
    expect(new Set(ends)).toEqual(new Set(['succeeded']))
  })

  it('answers in a session, and keeps what was said', async () => {
    await agent('talker')
    const { id } = await json<Session>(201, 'POST', '/v1/sessions', { agentName: 'talker' })
    for (const content of ['one', 'two']) {
      const reply = await json<TurnReply>(200, 'POST', `/v1/sessions/${id}/messages`, { content })
      expect(reply).toMatchObject({ sessionId: id })
    }
    expect((await json<Run[]>(200, 'GET', `/v1/runs?sessionId=${id}`)).length).toBe(2)
  })

  it('refuses the run that a budget has no room for', async () => {
    await agent('frugal')
    await json(200, 'PUT', '/v1/agents/frugal/budget', { maxRunsPerDay: 1 })
    expect((await ended((await run('frugal', 'hello')).id)).status).toBe('succeeded')
    const body = { agentName: 'frugal', input: { prompt: 'again' } }
    expect(await json(402, 'POST', '/v1/runs', body)).toMatchObject({ code: 'budget_exceeded' })
  })

  it('cancels a run that waits', async () => {
    await agent('patient')
    const { id } = await run('patient', '/call wait {"seconds":600}')
    await json(200, 'POST', `/v1/runs/${id}/cancel`, { reason: 'enough' })
    expect(await ended(id)).toMatchObject({ status: 'cancelled' })
  })

  it('refuses a run whose isolation nothing here can honour, with the reason', async () => {
    const manifest = { model: 'demo/echo', isolation: 'kata', tools: ['exec'] }
    await json(201, 'POST', '/v1/agents', { name: 'foreign', manifest })
    const started = await run('foreign', '/call exec {"command":"id"}')
    expect(await ended(started.id)).toMatchObject({ status: 'failed', error: { code: 'isolation_unavailable' } })
  })

  it('says how the runs went, the same to all who ask at once, and lists them with titles', async () => {
    await agent('counted')
    const { id } = await run('counted', 'Count this one')
    await ended(id)
    const all = await Promise.all(Array.from({ length: 5 }, () => json<Overview>(200, 'GET', '/v1/overview?range=1h')))
    for (const one of all) expect(one.total).toEqual(all[0]!.total)
    // An answer of a moment ago may be from before the end of the run.
    await eventually(async () => {
      const { agents } = await json<Overview>(200, 'GET', '/v1/overview?range=7d')
      expect(agents.some(({ agentName, succeeded }) => agentName === 'counted' && succeeded > 0)).toBe(true)
    })
    const path = '/v1/runs?agentName=counted&fields=title&subRuns=folded&count=true'
    const [listed] = await json<Run[]>(200, 'GET', path)
    expect(listed).toMatchObject({ id, title: 'Count this one', agentVersion: 1, subRuns: 0 })
    expect((await json<Run[]>(200, 'GET', '/v1/runs?sort=durationMs&agentName=counted')).map(one => one.id)).toEqual([
      id,
    ])
    const trial = { fromStepId: 'model-1', onlyStep: true }
    const forked = await json<Run>(201, 'POST', `/v1/runs/${id}/fork`, trial)
    expect(await ended(forked.id)).toMatchObject({ status: 'succeeded', forkedFrom: { onlyStep: true } })
  })
})
