import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routingConfig } from '../../router/cli/routing-config.ts'
import { auditSession } from '../../router/host/audit-session.ts'
import { serveRouter } from '../../router/host/node.ts'
import { createRouter, type Router } from '../../router/router.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { silentLog } from '../../shared/log/log.ts'
import { signer } from '../../shared/sign/ed25519.ts'
import type { Db } from '../../shared/sql/db.ts'
import { verifyReport } from '../../shared/wire/router/checkpoint.ts'
import { savings } from '../../shared/wire/router/savings.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { programEnv } from '../program-env.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'

const main = new URL('../../router/cli/main.ts', import.meta.url).pathname

if (await sqldAvailable()) {
  describe('an audit from a copy that follows the server', () => {
    let sqld: Sqld
    let folder: string
    let upstream: ScriptedUpstream
    let db: Db
    let router: Router
    let vars: Record<string, string>

    const ask = async () => {
      const body = JSON.stringify({
        model: 'claude-haiku-4-5',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'hi' }],
      })
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
      const got = await router.fetch(new Request('http://router/v1/messages', init))
      await got.text()
      return got.headers.get('x-router-trace-id')!
    }
    const sealed = async () => Number((await db.execute('select count(*) as n from traces')).rows[0]?.n)

    function command(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
      const child = spawn(process.execPath, [main, ...args], { env: { ...programEnv, ...vars }, cwd: folder })
      let [out, err] = ['', '']
      child.stdout.on('data', chunk => (out += chunk))
      child.stderr.on('data', chunk => (err += chunk))
      return new Promise(resolve => child.once('close', code => resolve({ code, out, err })))
    }

    beforeAll(async () => {
      sqld = await startSqld()
      folder = await mkdtemp(join(tmpdir(), 'waybill-replica-'))
      vars = { ROUTER_DB: join(folder, 'copy.db'), ROUTER_DB_REPLICA_OF: sqld.primaryUrl }
      upstream = await scriptedUpstream()
      upstream.always(answer(200, JSON.stringify(messagesAnswer('hi', 'claude-haiku-4-5'))))
      db = await openDb(sqld.primaryUrl)
      router = createRouter({
        db,
        env: { ROUTER_UPSTREAM_MESSAGES: upstream.origin },
        receiptStorage: { durable: false, signer: await signer(new Uint8Array(32).fill(5)) },
      })
      await router.ready()
    })
    afterAll(async () => {
      await router?.close()
      db?.close()
      await upstream?.close()
      await sqld?.stop()
      await rm(folder, { recursive: true, force: true })
    })

    it('verify and savings hold while the server is written, and catch up with it each time', {
      timeout: 60_000,
    }, async () => {
      let writing = true
      let asked = 0
      const writer = (async () => {
        for (; writing; asked++) await ask()
      })()
      const seen: number[] = []
      for (let round = 0; round < 4; round++) {
        const known = await sealed()
        const verified = await command('verify', '--json')
        expect([verified.code, verified.err]).toEqual([0, ''])
        const report = verifyReport.parse(JSON.parse(verified.out))
        expect(report.valid).toBe(true)
        expect(report.records).toBeGreaterThanOrEqual(known)
        seen.push(report.records)
        const sums = savings.parse(JSON.parse((await command('savings', '--json')).out))
        expect(sums.requests).toBeGreaterThanOrEqual(report.records)
      }
      writing = false
      await writer
      expect(seen).toEqual([...seen].sort((a, b) => a - b))
      expect(new Set(seen).size).toBeGreaterThan(1)
      await expect.poll(sealed, { timeout: 20_000 }).toBe(asked)
      expect(JSON.parse((await command('verify', '--json')).out)).toMatchObject({ valid: true, records: asked })
      expect(JSON.parse((await command('savings', '--json')).out)).toMatchObject({ requests: asked })
    })

    it('finds what was changed on the server', async () => {
      const before = await db.execute('select body from traces where seq = 1')
      await db.execute(`update traces set body = replace(body, '"status":200', '"status":201') where seq = 1`)
      const { code, out } = await command('verify', '--json')
      expect([code, JSON.parse(out)]).toEqual([1, expect.objectContaining({ valid: false })])
      await db.execute({ sql: 'update traces set body = ? where seq = 1', args: [before.rows[0]!.body!] })
      expect((await command('verify')).code).toBe(0)
    })

    it('answers the audit tools as of now, and takes no outcome', async () => {
      const session = await auditSession({
        vars,
        address: undefined,
        tenant: 'default',
        log: silentLog(),
        config: async () => (await routingConfig({})).config,
      })
      const id = await ask()
      await expect.poll(async () => (await session.call('get_trace', { trace_id: id })).isError).toBeUndefined()
      expect((await session.call('verify_receipts', {})).structuredContent).toMatchObject({ valid: true })
      const refused = await session.call('submit_feedback', { request_id: id, outcome: 'correct' })
      expect(refused).toEqual({
        isError: true,
        content: [
          {
            type: 'text',
            text: 'An outcome cannot be reported here. This store is a read-only copy that follows a server (ROUTER_DB_REPLICA_OF): write to that server.',
          },
        ],
      })
      expect((await db.execute('select count(*) as n from feedback')).rows[0]?.n).toBe(0)
      await session.close()
    })

    it('is no store for a router or for a change, and says when the server is away', async () => {
      await expect(serveRouter({ ...vars, ROUTER_BIND: '127.0.0.1:0' })).rejects.toThrow('a router writes its store')
      const unpinned = await command('calibrate', '--unpin')
      expect([unpinned.code, unpinned.err]).toEqual([
        3,
        expect.stringContaining('a read-only copy that follows a server'),
      ])
      vars = { ROUTER_DB: join(folder, 'other.db'), ROUTER_DB_REPLICA_OF: 'http://127.0.0.1:9' }
      const away = await command('verify')
      expect([away.code, away.out]).toEqual([3, ''])
      expect(away.err).toContain('http://127.0.0.1:9')
    })
  })
}
