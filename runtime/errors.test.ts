import { once } from 'node:events'
import { connect } from 'node:net'
import { Hono } from 'hono'
import { expect, it } from 'vitest'
import { listen } from '../shared/host/serve.ts'
import { createLog, parseLogFilter } from '../shared/log/log.ts'
import { eventually } from '../tests/eventually.ts'
import { answerErrors } from './errors.ts'

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
