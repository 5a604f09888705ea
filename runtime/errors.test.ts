import { once } from 'node:events'
import { connect } from 'node:net'
import { Hono } from 'hono'
import { expect, it } from 'vitest'
import { listen } from '../shared/host/serve.ts'
import { requestId } from '../shared/http/request-id.ts'
import { createLog, parseLogFilter } from '../shared/log/log.ts'
import { markUnavailable } from '../shared/sql/db-fault.ts'
import { StoreServerError } from '../shared/sql/hrana/server-error.ts'
import { eventually } from '../tests/eventually.ts'
import { answerErrors } from './errors.ts'
import type { RuntimeHttpEnv } from './http/http-env.ts'

it('a client that leaves in the middle of its body is no failure of the service', async () => {
  const lines: string[] = []
  const log = createLog({ filter: parseLogFilter('debug')!, write: line => lines.push(line) })
  let ended = 0
  const app = new Hono().post('/', async c => {
    try {
      return c.text(String((await c.req.arrayBuffer()).byteLength))
    } finally {
      ended++
    }
  })
  app.post('/broken', () => Promise.reject(new Error('a fault of the service')))
  app.onError(answerErrors(log))
  const { origin, close } = await listen({
    bind: { host: '127.0.0.1', port: 0 },
    fetch: async request => app.fetch(request),
    bodyMs: 60_000,
  })
  const client = connect(Number(new URL(origin).port), '127.0.0.1')
  await once(client, 'connect')
  client.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nno more than this')
  await new Promise(resolve => setTimeout(resolve, 50))
  client.destroy()
  await eventually(() => expect(ended).toBe(1))
  expect((await fetch(`${origin}/broken`, { method: 'POST' })).status).toBe(500)
  await close(50)
  expect(lines.filter(line => line.includes('request failed'))).toEqual([expect.stringContaining('/broken')])
})

it('a fault stands in the log under the request id that its caller has', async () => {
  const lines: string[] = []
  const log = createLog({ filter: parseLogFilter('error')!, write: line => lines.push(line) })
  const app = new Hono<RuntimeHttpEnv>().use(requestId()).get('/', () => Promise.reject(new Error('a fault')))
  app.onError(answerErrors(log))
  const answer = await app.request('/')
  expect(JSON.parse(lines[0]!)).toMatchObject({ requestId: answer.headers.get('x-request-id') })
})

it('a store that is away is said once a minute, however many calls fail by it', async () => {
  const lines: string[] = []
  const log = createLog({ filter: parseLogFilter('info')!, write: line => lines.push(line) })
  let ms = 0
  const clock = { now: () => new Date(ms), monotonic: () => ms }
  const away = () =>
    markUnavailable(() => Promise.reject(new StoreServerError('connection refused', 'SERVER_NOT_REACHED')))
  const app = new Hono<RuntimeHttpEnv>().get('/', away)
  app.onError(answerErrors(log, clock))
  for (let n = 0; n < 200; n++) expect((await app.request('/')).status).toBe(503)
  expect(lines).toHaveLength(1)
  ms = 61_000
  await app.request('/')
  expect(lines).toHaveLength(2)
})
