import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRuntime, type Runtime } from '../runtime/runtime.ts'
import { poolTransport } from '../shared/host/pool-transport.ts'
import { type Db, prepareDb } from '../shared/sql/db.ts'
import { serverAddress } from '../shared/sql/hrana/server-address.ts'
import { serverClient } from '../shared/sql/hrana/server-client.ts'
import { type Sqld, sqldAvailable, startSqld } from './backends/sqld.ts'
import { type Counts, difference, type Slack } from './counts/table.ts'
import { KEY } from './runtime/api.ts'

/**
 * The loops of schedules and webhooks look about once a second, whether anything happens or not, and a request of theirs
 * may take a piece of work's reads along. So a request counts when it asks for anything but that and its own frame.
 */
const LOOKING =
  /from (?:schedules|schedule_fires|webhook_deliveries|sqlite_schema limit 0)\b|^(?:begin|commit|rollback)\b/
const works = (body: string) =>
  [...body.matchAll(/"sql":"((?:[^"\\]|\\.)*)"/g)].some(([, sql = '']) => !LOOKING.test(sql))

interface Work extends Record<string, number> {
  requests: number
  transactions: number
}

/** Of one caller, so that it is the same each time. `WAYBILL_COUNTS=write npm test -- tests/server-counts.test.ts` renews it. */
const TABLE = new URL('counts/server-counts.json', import.meta.url).pathname
/** What was spent is held against soft limits once for all the calls of 100 ms: once more for each 100 ms that the machine is slower. */
const SLACK: Record<string, Slack> = { 'a run of ten no-op steps, and its events': { requests: 4 } }
const table = JSON.parse(readFileSync(TABLE, 'utf8')) as Record<string, Counts>

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
            if (writes || works(body)) work.requests++
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
      await call('POST', '/v1/agents', { name: 'noop', manifest: { model: 'demo/echo', tools: ['wait'] } })
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

    const create = async (prompt: string) => {
      const made = await call('POST', '/v1/runs', { agentName: 'noop', input: { prompt } })
      return (JSON.parse(made) as { id: string }).id
    }

    /** A run, and its events to the end. */
    async function run(prompt = 'hello'): Promise<string> {
      const id = await create(prompt)
      await call('GET', `/v1/runs/${id}/events`)
      return id
    }

    async function worked(act: () => Promise<unknown>): Promise<Work> {
      // What is held against soft limits after a call follows within 100 ms, and so does the end of the run.
      await new Promise(resolve => setTimeout(resolve, 300))
      work = { requests: 0, transactions: 0 }
      await act()
      await new Promise(resolve => setTimeout(resolve, 300))
      return work
    }

    it('each piece of work costs what the table says', async () => {
      const ended = await run()
      const pieces: Record<string, () => Promise<unknown>> = {
        'a run of one model call, and its events': () => run(),
        'a run of ten no-op steps, and its events': () => run('/call*10 wait {"seconds":0}'),
        'one run is read': () => call('GET', `/v1/runs/${ended}`),
        'the events of an ended run as SSE': () => call('GET', `/v1/runs/${ended}/events`),
        'a page of runs': () => call('GET', '/v1/runs?limit=50'),
      }
      // The list of its tools is written once for an agent.
      await run('/call*10 wait {"seconds":0}')
      const found: Record<string, Work> = {}
      for (const [name, act] of Object.entries(pieces)) {
        // What looks around every few seconds may fall into one try, and not into all.
        for (let tries = 0; tries < 4; tries++) {
          found[name] = await worked(act)
          if (difference(name, table[name] ?? {}, found[name], SLACK[name]) === undefined) break
        }
      }
      if (process.env.WAYBILL_COUNTS === 'write') {
        writeFileSync(TABLE, `${JSON.stringify(found, null, 2)}\n`)
        return
      }
      expect(Object.keys(found)).toEqual(Object.keys(table))
      const told = Object.entries(found).map(([name, work]) => difference(name, table[name] ?? {}, work, SLACK[name]))
      expect(told.filter(one => one !== undefined)).toEqual([])
    })

    it('a run by itself takes few', () => {
      const alone = table['a run of one model call, and its events']
      expect(alone?.requests).toBeLessThanOrEqual(8)
      expect(alone?.transactions).toBeLessThanOrEqual(3)
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
