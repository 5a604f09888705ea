import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { routerChild } from './router-child.ts'

let folder: string
let provider: Server
let upstream: string
const children: ChildProcess[] = []

const KEY = 'k'.repeat(32)

const WHOLE = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
})
const FRAMES = [
  `data: {"id":"chatcmpl-2","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n`,
  'data: [DONE]\n\n',
]

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-durable-'))
  // One answer says its length and one does not: the end of each is something else.
  provider = createServer((request, response) => {
    request.resume().on('end', () => {
      if (request.headers['x-stream'] === undefined) {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(WHOLE) })
        response.end(WHOLE)
      } else {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        for (const frame of FRAMES) response.write(frame)
        response.end()
      }
    })
  })
  await new Promise<void>(resolve => provider.listen(0, '127.0.0.1', resolve))
  upstream = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  provider.close()
  await rm(folder, { recursive: true, force: true })
})

const serve = (db: string, vars: Record<string, string>) =>
  routerChild(db, { ROUTER_RECEIPTS: 'durable', ROUTER_UPSTREAM_CHAT: upstream, ...vars }, children)

/** Calls until the router is gone; the ids of the answers that came to their end. */
async function callUntilGone(origin: string, stream: boolean, finished: string[]): Promise<void> {
  for (;;) {
    try {
      const response = await fetch(`${origin}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-router-key': KEY, ...(stream && { 'x-stream': '1' }) },
        body: JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'Hello' }] }),
      })
      const text = await response.text()
      expect(text).toBe(stream ? FRAMES.join('') : WHOLE)
      finished.push(response.headers.get('x-router-trace-id')!)
    } catch (error) {
      if (error instanceof TypeError) return
      throw error
    }
  }
}

it.each([
  ['without keys', {}],
  ['with keys', { ROUTER_KEYS: `default:${KEY}` }],
])(
  'with durable receipts an observed answer that came to its end has its receipt after kill -9: %s',
  async (name, vars) => {
    const db = join(folder, `${name.length}.db`)
    const finished: string[] = []
    for (const most of [40, 90]) {
      const { child, origin } = await serve(db, vars)
      const calls = [false, true, false, true].map(stream => callUntilGone(origin, stream, finished))
      await expect.poll(() => finished.length, { interval: 1, timeout: 30_000 }).toBeGreaterThan(most)
      child.kill('SIGKILL')
      await Promise.all([once(child, 'close'), ...calls])
    }

    // The next start brings what was spilled into the store.
    const { child } = await serve(db, vars)
    const store = await openDb(db)
    try {
      await expect
        .poll(
          async () => {
            const { rows } = await store.execute('select trace_id from traces')
            const stored = new Set(rows.map(({ trace_id }) => trace_id))
            return finished.filter(id => !stored.has(id))
          },
          { timeout: 5000 },
        )
        .toEqual([])
    } finally {
      store.close()
      child.kill('SIGKILL')
    }
  },
)
