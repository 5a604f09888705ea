import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRuntime, type Runtime } from '../runtime/runtime.ts'
import { poolTransport } from '../shared/host/pool-transport.ts'
import { type Db, prepareDb } from '../shared/sql/db.ts'
import { serverAddress } from '../shared/sql/hrana/server-address.ts'
import { serverClient } from '../shared/sql/hrana/server-client.ts'
import { type Sqld, sqldAvailable, startSqld } from './backends/sqld.ts'
import { KEY } from './runtime/api.ts'

/** The loops of schedules and webhooks look about once a second, whether anything happens or not. */
const LOOKING_ROUND = /from (?:schedules|schedule_fires|webhook_deliveries)\b/

interface Work {
  requests: number
  transactions: number
}

if (await sqldAvailable()) {
  describe('on a libSQL server', () => {
    let server: Sqld
    let db: Db
    let runtime: Runtime
    let work: Work
    beforeAll(async () => {
      server = await startSqld()
      const address = serverAddress(server.primaryUrl)
      const inner = await poolTransport(address)
      const client = serverClient({
        url: address.url,
        transport: {
          post(url, body) {
            const writes = body.includes('begin immediate')
            if (writes || !LOOKING_ROUND.test(body)) work.requests++
            if (writes) work.transactions++
            return inner.post(url, body)
          },
          close: () => inner.close(),
        },
      })
      work = { requests: 0, transactions: 0 }
      db = await prepareDb(client, { kind: 'remote', writes: client.writes })
      const [masterKey, receiptSeed] = [new Uint8Array(32).fill(7), new Uint8Array(32).fill(9)]
      runtime = createRuntime({ db, bootstrapKey: KEY, masterKey, receiptSeed })
      await runtime.ready()
      await call('POST', '/v1/agents', { name: 'noop', manifest: { model: 'demo/echo' } })
      await run()
    })
    afterAll(async () => {
      await runtime?.close(1000)
      await db?.close()
      await server?.stop()
    })

    async function call(method: string, path: string, body?: object): Promise<string> {
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
      const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
      const answer = await runtime.fetch(new Request(`http://localhost${path}`, init))
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
      return text
    }

    /** A run of one model call, and its events to the end. */
    async function run(): Promise<void> {
      const made = await call('POST', '/v1/runs', { agentName: 'noop', input: { prompt: 'hello' } })
      await call('GET', `/v1/runs/${(JSON.parse(made) as { id: string }).id}/events`)
    }

    async function worked(act: () => Promise<unknown>): Promise<Work> {
      // What is held against soft limits after a call follows within 100 ms, and so does the end of the run.
      await new Promise(resolve => setTimeout(resolve, 300))
      work = { requests: 0, transactions: 0 }
      await act()
      await new Promise(resolve => setTimeout(resolve, 300))
      return work
    }

    it('a run of one model call by itself takes no more requests and transactions', async () => {
      const alone = await worked(run)
      expect(alone.requests).toBeLessThanOrEqual(14)
      expect(alone.transactions).toBeLessThanOrEqual(5)
    })

    it('runs of 24 clients share them', async () => {
      const each = 10
      const together = await worked(() =>
        Promise.all(
          Array.from({ length: 24 }, async () => {
            for (let made = 0; made < each; made++) await run()
          }),
        ),
      )
      expect(together.requests / 24 / each).toBeLessThanOrEqual(2.5)
      expect(together.transactions / 24 / each).toBeLessThanOrEqual(1.25)
    })
  })
}
