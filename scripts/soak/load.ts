import { setTimeout as wait } from 'node:timers/promises'
import { Agent } from 'undici'

export interface Places {
  runtime: string
  router: string
  key: string
}

export type Tally = Map<string, number>

/** As many as a router remembers of a tenant (docs/spec/router.md §4.6): what grows afterwards is none of these. */
const SESSIONS = 20_000

/** The first turn of so many sessions, so that the memory of them has its size before anything is measured. */
export async function manySessions({ router }: Places): Promise<void> {
  const agent = new Agent({ connections: 64, pipelining: 1 })
  const body = JSON.stringify({ model: 'auto', max_tokens: 8, messages: [{ role: 'user', content: 'hi' }] })
  let left = SESSIONS
  const client = async () => {
    while (left-- > 0) {
      const headers = { 'content-type': 'application/json', 'x-router-session': `session-${left}` }
      const answer = await agent
        .request({ origin: router, path: '/v1/messages', method: 'POST', headers, body })
        .catch(() => undefined)
      await answer?.body.dump().catch(() => undefined)
    }
  }
  await Promise.all(Array.from({ length: 64 }, client))
  await agent.close()
}

/** What several kinds of callers do all the time, at a pace that the machine can hold; everything they see is counted. */
export function mixedLoad({ runtime, router, key }: Places, tally: Tally) {
  const agent = new Agent({ connections: 64, pipelining: 1, bodyTimeout: 30_000 })
  const json = { 'content-type': 'application/json', authorization: `Bearer ${key}` }
  let stopped = false
  const count = (what: string) => tally.set(what, (tally.get(what) ?? 0) + 1)

  async function call(what: string, origin: string, path: string, body?: object, abortMs?: number) {
    const signal = abortMs === undefined ? undefined : AbortSignal.timeout(abortMs)
    try {
      const answer = await agent.request({
        origin,
        path,
        method: body ? 'POST' : 'GET',
        headers: json,
        ...(signal && { signal }),
        ...(body && { body: JSON.stringify(body) }),
      })
      const text = await answer.body.text()
      count(`${what} ${answer.statusCode}`)
      return { status: answer.statusCode, headers: answer.headers, text }
    } catch (error) {
      // Ours, or a provider's connection that broke in the middle of an answer and is passed on as it is.
      count(`${what} ${abortMs === undefined ? 'broken off' : 'left'}`)
      return { status: 0, headers: {}, text: String(error) }
    }
  }

  const ask = (stream: boolean, model = 'claude-haiku-4-5') => ({
    model,
    max_tokens: 64,
    stream,
    messages: [{ role: 'user', content: 'x'.repeat(600) }],
  })

  const callers: (() => Promise<void>)[] = [
    async () => void (await call('observe', router, '/v1/messages', ask(false))),
    async () => void (await call('observe stream', router, '/v1/messages', ask(true))),
    async () => void (await call('a caller who leaves', router, '/v1/messages', ask(true), 3)),
    async () => {
      const { status, headers } = await call('enforce', router, '/v1/messages', ask(false, 'auto'))
      const id = headers['x-router-trace-id']
      if (status !== 200 || typeof id !== 'string') return
      await call('feedback', router, '/v1/feedback', { request_id: id, outcome: 'correct' })
    },
    async () => {
      const input = { prompt: '/call*4 wait {"seconds":0}' }
      const made = await call('run', runtime, '/v1/runs', { agentName: 'soak', input })
      if (made.status !== 201) return
      const { id } = JSON.parse(made.text) as { id: string }
      await call('events', runtime, `/v1/runs/${id}/events`)
      await call('receipt', runtime, `/v1/runs/${id}/receipt`)
    },
    async () => {
      const made = await call('routed run', runtime, '/v1/runs', { agentName: 'routed', input: { prompt: 'hi' } })
      if (made.status !== 201) return
      const { id } = JSON.parse(made.text) as { id: string }
      await call('events', runtime, `/v1/runs/${id}/events`)
    },
    async () => {
      const made = await call('run to cancel', runtime, '/v1/runs', {
        agentName: 'soak',
        input: { prompt: '/call wait {"seconds":5}' },
      })
      if (made.status !== 201) return
      const { id } = JSON.parse(made.text) as { id: string }
      await call('a watcher who leaves', runtime, `/v1/runs/${id}/events`, undefined, 100)
      await call('cancel', runtime, `/v1/runs/${id}/cancel`, {})
    },
    async () => void (await call('list', runtime, '/v1/runs?limit=20')),
    async () => void (await call('bad input', runtime, '/v1/runs', { agentName: 'nobody', input: {} })),
  ]

  const working = callers.map(async caller => {
    while (!stopped) {
      await caller()
      await wait(20 + Math.random() * 60)
    }
  })

  return {
    call,
    async stop() {
      stopped = true
      await Promise.all(working)
      await agent.close()
    },
  }
}
