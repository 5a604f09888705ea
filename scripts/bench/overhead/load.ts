import { Agent } from 'undici'

const words = 'x'.repeat(800)
const turn = (i: number) => ({
  role: i % 2 === 0 ? 'user' : 'assistant',
  content: [{ type: 'text', text: `word ${i} `.repeat(100) }],
})

/** A question of about 1 kB, or one that ends a conversation of so many turns of about 1 kB. */
const body = (stream: boolean, turns = 0) => {
  const messages = [...Array.from({ length: turns }, (_, i) => turn(i)), { role: 'user', content: words }]
  return JSON.stringify({ model: 'claude-haiku-4-5', max_tokens: 64, stream, messages })
}

export interface Asking {
  stream?: boolean
  turns?: number
}

const HEADERS = [
  'content-type',
  'application/json',
  'x-api-key',
  'bench-key-of-nobody',
  'anthropic-version',
  '2023-06-01',
]

/** Milliseconds until the first byte of the body, and until the end. */
interface Timing {
  first: number
  total: number
}

/** Where calls go, and what they carry beside the headers of the dialect. */
export interface Hop {
  origin: string
  headers?: string[]
}

function call(agent: Agent, { origin, headers = [] }: Hop, payload: string): Promise<Timing> {
  return new Promise((resolve, reject) => {
    const start = performance.now()
    let first = 0
    agent.dispatch(
      { origin, path: '/v1/messages', method: 'POST', headers: [...HEADERS, ...headers], body: payload },
      {
        onConnect() {},
        onHeaders(status: number) {
          if (status !== 200) reject(new Error(`${origin} answered ${status}`))
          return true
        },
        onData() {
          first ||= performance.now() - start
          return true
        },
        onComplete: () => resolve({ first, total: performance.now() - start }),
        onError: reject,
      },
    )
  })
}

/** Requests per second over 32 connections, each sending its next call when the last one ended. */
export async function throughput(hop: Hop, calls: number, { stream = false, turns = 0 }: Asking = {}): Promise<number> {
  const connections = 32
  const agent = new Agent({ connections, pipelining: 1 })
  const payload = body(stream, turns)
  let left = calls
  const started = performance.now()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (left-- > 0) await call(agent, hop, payload)
    }),
  )
  const rate = (calls * 1000) / (performance.now() - started)
  await agent.close()
  return rate
}

/** Requests per second as above, for a while; also how many were answered. */
export async function throughputFor(hop: Hop, ms: number): Promise<{ rate: number; calls: number }> {
  const connections = 32
  const agent = new Agent({ connections, pipelining: 1 })
  const payload = body(false)
  const started = performance.now()
  let calls = 0
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (performance.now() - started < ms) {
        await call(agent, hop, payload)
        calls++
      }
    }),
  )
  const rate = (calls * 1000) / (performance.now() - started)
  await agent.close()
  return { rate, calls }
}

/** Timings of calls made one after the other. */
export async function sequential(hop: Hop, calls: number, { stream = false, turns = 0 }: Asking): Promise<Timing[]> {
  const agent = new Agent({ connections: 1, pipelining: 1 })
  const payload = body(stream, turns)
  for (let i = 0; i < 20; i++) await call(agent, hop, payload)
  const timings: Timing[] = []
  for (let i = 0; i < calls; i++) timings.push(await call(agent, hop, payload))
  await agent.close()
  return timings
}
