import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { sqldAvailable, startSqld } from '../backends/sqld.ts'
import { eventually } from '../eventually.ts'
import { programEnv } from '../program-env.ts'
import { clients, manyProcesses, routingConfig, slowProvider } from './many-processes.ts'

if (await sqldAvailable())
  it('several processes on a libSQL server: the writer is killed, no call fails, and each answered call has its receipt', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-processes-'))
    const provider = await slowProvider()
    const server = await startSqld()
    const config = join(folder, 'router.toml')
    await writeFile(config, routingConfig(provider.origin, '[budget]\nper_day_usd = 100\n'))
    const router = await manyProcesses(['--config', config, '--db', server.primaryUrl], { ROUTER_LOG: 'error' })
    const load = clients(router.origin, 6)
    try {
      await load.further(30)
      const { writer } = await router.pids()
      process.kill(writer, 'SIGKILL')
      await load.further(30)
      expect(load.failed).toEqual([])
      await eventually(async () => expect((await router.pids()).writer).toBeGreaterThan(writer))
      const all = load.answered.length
      await load.stop()
      expect(load.answered.filter(({ status }) => status !== 200)).toEqual([])
      expect(await router.stop()).toBe(0)
      const db = await openDb(server.primaryUrl)
      const { rows } = await db.execute('select trace_id from traces')
      db.close()
      const stored = new Set(rows.map(row => String(row.trace_id)))
      expect(stored.size).toBeGreaterThanOrEqual(all)
      expect(load.answered.filter(({ traceId }) => !stored.has(traceId))).toEqual([])
      const verify = ['router/cli/main.ts', 'verify', '--db', server.primaryUrl]
      const { stdout } = await promisify(execFile)(process.execPath, verify, { env: programEnv })
      expect(stdout).toContain(`valid: ${stored.size} records`)
    } finally {
      await load.stop()
      router.child.kill('SIGKILL')
      provider.close()
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    }
  }, 180_000)
