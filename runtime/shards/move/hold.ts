import type { InStatement } from '@libsql/client/web'
import type { Db } from '../../../shared/sql/db.ts'
import { isFailedCondition, isMissingTable } from '../../../shared/sql/db-fault.ts'
import { reads } from '../../../shared/sql/guarded-client.ts'
import { textOf } from '../../../shared/sql/sql-values.ts'

/** Another command goes on with the move, takes it back or has ended it. */
export class MoveTaken extends Error {
  override name = 'MoveTaken'
}

const TABLE = `create table if not exists shard_holds (
  tenant_id text primary key,
  holder text not null
) strict, without rowid`

/**
 * The database as one command may write to it that moves a tenant: until another command holds it for the same tenant. A command that was
 * halted and goes on would otherwise write old rows over what the tenant has done since. The last one holds it, so that a move whose command
 * was killed can be gone on with at once.
 */
export async function acquireHold(db: Db, tenantId: string, holder: string): Promise<Db> {
  const sql =
    'insert into shard_holds (tenant_id, holder) values (?, ?) on conflict do update set holder = excluded.holder'
  await db.write([TABLE, { sql, args: [tenantId, holder] }])
  const holds: InStatement = {
    sql: `insert into shard_holds (tenant_id, holder)
      select null, ?2 where not exists (select 1 from shard_holds where tenant_id = ?1 and holder = ?2)`,
    args: [tenantId, holder],
  }
  async function write(statements: InStatement[]) {
    if (statements.length === 0) return []
    try {
      return (await db.write([holds, ...statements])).slice(1)
    } catch (error) {
      if (!isHeldByOther(error)) throw error
      throw new MoveTaken(
        `another command has taken over the move of tenant ${tenantId}, and this one has stopped: see \`runtime shards list\``,
      )
    }
  }
  return {
    ...db,
    write,
    async execute(statement) {
      if (reads(textOf(statement))) return db.execute(statement)
      return (await write([statement]))[0]!
    },
  }
}

/** Nothing of the hold is left; another command's stays. */
export async function releaseHold(db: Db, tenantId: string, holder: string): Promise<void> {
  await db.write([{ sql: 'delete from shard_holds where tenant_id = ? and holder = ?', args: [tenantId, holder] }])
  try {
    await db.write([
      'insert into shard_holds (tenant_id, holder) select null, holder from shard_holds limit 1',
      'drop table shard_holds',
    ])
  } catch (error) {
    if (!isHeldByOther(error)) throw error
  }
}

/** A command that let go last has dropped the table. */
const isHeldByOther = (error: unknown): boolean =>
  isFailedCondition(error, 'shard_holds.tenant_id') || isMissingTable(error, 'shard_holds')
