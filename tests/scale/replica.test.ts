import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { replicaLag } from '../../runtime/health/readiness.ts'
import { examine } from '../../runtime/host/examine.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { type Sqld, sqldAvailable, startSqld } from '../backends/sqld.ts'
import { type Api, api } from '../runtime/api.ts'

const here = await sqldAvailable()

describe.runIf(here)('a replica of the store', () => {
  let sqld: Sqld
  let on: Api
  let server: Db
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-lag-'))
    sqld = await startSqld({ replica: true })
    server = await openDb(sqld.replicaUrl!, { readOnly: true })
    on = await api({ url: sqld.primaryUrl, replica: server })
    await on.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model: 'demo/echo' } })
  })
  afterAll(async () => {
    await on?.close()
    server?.close()
    await sqld?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const start = () => on.json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'hello' } })

  it('that does not follow is behind by what was written since, until it follows again', async () => {
    await start()
    const copy = await openDb(join(folder, 'copy.db'), { syncUrl: sqld.primaryUrl })
    const first = await replicaLag(on.db, copy)
    expect(first).toEqual({ runs: 0, ms: 0 })
    for (let number = 0; number < 3; number++) await start()
    const late = await replicaLag(on.db, copy)
    expect([late.runs, late.ms > 0]).toEqual([3, true])
    await copy.sync()
    expect(await replicaLag(on.db, copy)).toEqual({ runs: 0, ms: 0 })
    copy.close()
  })

  it('that is a server catches up by itself, and metrics and doctor tell how far it is', async () => {
    await start()
    await expect.poll(() => replicaLag(on.db, server), { timeout: 20_000 }).toEqual({ runs: 0, ms: 0 })
    const page = await (await on.call('GET', '/metrics')).text()
    expect(page).toMatch(/\nwaybill_replica_lag_seconds 0\n/)
    const found = await examine({
      PLATFORM_DATABASE_URL: sqld.primaryUrl,
      PLATFORM_DATABASE_REPLICA_URL: sqld.replicaUrl,
      PLATFORM_DATA_DIR: folder,
      PLATFORM_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
    })
    expect(found.find(({ about }) => about === 'replica')).toMatchObject({ is: 'ok', says: 'it has the newest run' })
  })
})
