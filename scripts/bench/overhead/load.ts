import { Agent } from 'undici'

const words = 'x'.repeat(800)
const body = (stream: boolean) =>
  JSON.stringify({ model: 'claude-haiku-4-5', max_tokens: 64, stream, messages: [{ role: 'user', content: words }] })
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

/** Requests per second over `connections` connections, each sending its next call when the last one ended. */
export async function throughput(hop: Hop, calls: number, { connections = 32, stream = false } = {}): Promise<number> {
  const agent = new Agent({ connections, pipelining: 1 })
  const payload = body(stream)
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

/** Timings of calls made one after the other. */
export async function sequential(hop: Hop, calls: number, stream: boolean): Promise<Timing[]> {
  const agent = new Agent({ connections: 1, pipelining: 1 })
  const payload = body(stream)
  for (let i = 0; i < 20; i++) await call(agent, hop, payload)
  const timings: Timing[] = []
  for (let i = 0; i < calls; i++) timings.push(await call(agent, hop, payload))
  await agent.close()
  return timings
}
