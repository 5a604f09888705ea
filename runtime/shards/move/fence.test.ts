import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { openDb } from '../../../shared/host/open-libsql.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { migrate } from '../../../shared/sql/migrate.ts'
import { type Sqld, sqldAvailable, startSqld } from '../../../tests/backends/sqld.ts'
import { runtimeSteps } from '../../schema/steps.ts'
import { phaseOf, startChangeCapture, stopChangeCapture } from './fence.ts'

const folder = await mkdtemp(join(tmpdir(), 'waybill-fence-'))
const server: Sqld | undefined = (await sqldAvailable()) ? await startSqld() : undefined
afterAll(async () => {
  await server?.stop()
  await rm(folder, { recursive: true, force: true })
})

const remainsOf = async (db: Db) => (await db.execute("select name from sqlite_master where name like 'shard%'")).rows

it.each([['a file', join(folder, 'store.db')], ...(server ? [['a server', server.primaryUrl]] : [])])(
  'the end of one move and the beginning of another leave each other alone: %s',
  async (_, url) => {
    // As two commands: each has a connection of its own.
    const [one, other] = [await openDb(url!), await openDb(url!)]
    await migrate(one, 'runtime', runtimeSteps)
    const tenant = (id: string) => ({
      sql: 'insert into tenants (id, name, created_ms) values (?1, ?1, 0)',
      args: [id],
    })
    await one.write(['a', 'b'].map(tenant))
    for (let turn = 0; turn < 20; turn++) {
      const [leaving, coming] = turn % 2 ? ['a', 'b'] : ['b', 'a']
      if (turn === 0) await startChangeCapture(one, leaving!)
      const ended = stopChangeCapture(one, leaving!)
      await new Promise(resolve => setTimeout(resolve, turn % 5))
      await Promise.all([ended, startChangeCapture(other, coming!)])
      expect([turn, await phaseOf(one, leaving!), await phaseOf(one, coming!)]).toEqual([turn, undefined, 'copy'])
      await other.execute({ sql: 'update tenants set name = ? where id = ?', args: [`turn ${turn}`, coming!] })
      const noted = await one.execute({ sql: 'select tab from shard_changes where tenant_id = ?', args: [coming!] })
      expect([turn, noted.rows]).toEqual([turn, [{ tab: 'tenants' }]])
    }
    await stopChangeCapture(one, 'b')
    expect(await remainsOf(one)).toEqual([])
    await one.close()
    await other.close()
  },
)
