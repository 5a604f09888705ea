import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { type Sqld, sqldAvailable, startSqld } from '../../../tests/backends/sqld.ts'
import { programEnv } from '../../../tests/program-env.ts'
import { isFull } from '../../../tests/slice.ts'
import { poolTransport } from '../../host/pool-transport.ts'
import { prepareDb } from '../db.ts'
import { serverAddress } from './server-address.ts'
import { type ServerClient, serverClient } from './server-client.ts'
import type { HranaTransport } from './stream.ts'

const fiftyWriters = fileURLToPath(new URL('../../../tests/backends/fifty-writers-child.ts', import.meta.url))

/** A way on which writes can be held back. */
async function heldWay(url: string) {
  const inner = await poolTransport(serverAddress(url))
  let held: PromiseWithResolvers<void> | undefined
  let down = false
  const transport: HranaTransport = {
    async post(to, body) {
      if (down) throw new Error('the way is down')
      if (body.includes('begin immediate')) await held?.promise
      return inner.post(to, body)
    },
    close: () => inner.close(),
  }
  return {
    transport,
    hold: () => (held = Promise.withResolvers()),
    letGo: () => held?.resolve(),
    cut: () => (down = true),
  }
}

if (await sqldAvailable()) {
  let server: Sqld
  let client: ServerClient
  const settled: Promise<unknown>[] = []
  afterEach(async () => {
    await Promise.allSettled(settled.splice(0))
    await client?.close()
    await server?.stop()
  })

  describe('a server that takes no writes', () => {
    it('is found by a read that it answers, told once, and made known by the readiness check', async () => {
      server = await startSqld()
      const way = await heldWay(server.primaryUrl)
      client = serverClient({ url: server.primaryUrl, transport: way.transport, stuckAfterMs: 50 })
      const db = await prepareDb(client, { kind: 'remote', writes: client.writes })
      await db.execute('create table t (n integer) strict')
      const told: boolean[] = []
      client.writes.onChange(stuck => told.push(stuck))
      await expect(db.writable()).resolves.toBeUndefined()

      way.hold()
      settled.push(db.execute('insert into t values (1)'))
      await expect.poll(() => client.writes.stuck, { timeout: 5000 }).toBe(true)
      await expect(db.writable()).rejects.toThrow(/takes no writes \(store_stuck\): restart it/)
      expect((await db.execute('select count(*) as n from t')).rows[0]?.n).toBe(0)

      way.letGo()
      await Promise.all(settled)
      expect(client.writes.stuck).toBe(false)
      await expect(db.writable()).resolves.toBeUndefined()
      expect(told).toEqual([true, false])
    })

    it('is not called so where nothing is answered', async () => {
      server = await startSqld()
      const way = await heldWay(server.primaryUrl)
      client = serverClient({ url: server.primaryUrl, transport: way.transport, stuckAfterMs: 50 })
      way.hold()
      settled.push(client.execute('create table t (n integer) strict').catch(() => undefined))
      await new Promise(resolve => setTimeout(resolve, 10))
      way.cut()
      await new Promise(resolve => setTimeout(resolve, 300))
      expect(client.writes.stuck).toBe(false)
      way.letGo()
    })
  })

  // Two cores are busy meanwhile. The server stops by chance: as a rule within half a minute, now and then not in four.
  describe.runIf(isFull)('the pinned server with fifty writers', () => {
    it('is called stuck where it stops taking writes while it answers reads', async ({ skip }) => {
      server = await startSqld()
      const url = server.primaryUrl
      client = serverClient({ url, transport: await poolTransport(serverAddress(url)) })
      await client.execute('create table t (n integer, text text) strict')
      const began = performance.now()
      let written = began
      const silentMs = () => performance.now() - written
      let over = false
      const writers = spawn(process.execPath, [fiftyWriters, url], {
        env: programEnv,
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      writers.stdout.on('data', () => (written = performance.now()))
      const own = (async () => {
        while (!over) {
          await client.execute("insert into t values (0, 'own')").catch(() => undefined)
          await new Promise(resolve => setTimeout(resolve, 100))
        }
      })()
      // A write of our own that is sent when all have stopped is late after 10 s.
      while (!client.writes.stuck && silentMs() < 30_000 && performance.now() - began < 120_000)
        await new Promise(resolve => setTimeout(resolve, 100))
      over = true
      const hasStopped = client.writes.stuck || silentMs() >= 30_000
      if (hasStopped) {
        expect(client.writes.stuck, `no write for ${Math.round(silentMs())} ms`).toBe(true)
        expect((await client.execute('select count(*) as n from t')).rows[0]?.n).toBeGreaterThan(0)
      }
      await server.down()
      writers.kill('SIGKILL')
      await own
      await server.back()
      await client.execute("insert into t values (1, 'after the restart')")
      expect(client.writes.stuck).toBe(false)
      skip(!hasStopped, 'the server took writes for two minutes')
    }, 300_000)
  })
}
