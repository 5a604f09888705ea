import type { InStatement } from '@libsql/client/web'
import { type Db, rowsOf } from '../../shared/sql/db.ts'

export interface Shard {
  name: string
  url: string
  /** A closed shard gets no new tenants. */
  state: 'open' | 'closed'
}

export interface Move {
  tenantId: string
  from: string
  to: string
  /** `switched`: the tenant is at its new place, and the old copy is still there. `back`: it is being taken back. */
  state: 'copying' | 'fencing' | 'switched' | 'back'
}

/** Where a tenant is, and whether its writes are refused at this moment. */
export interface TenantShard {
  tenantId: string
  shard: string
  fenced: boolean
}

export type Directory = ReturnType<typeof directory>

const PLACED = `select t.tenant_id, t.shard, exists (
    select 1 from moves as m where m.tenant_id = t.tenant_id and m.state = 'fencing') as fenced
  from shard_tenants as t`

interface PlaceRow {
  tenant_id: string
  shard: string
  fenced: number
}

const toTenantShard = ({ tenant_id, shard, fenced }: PlaceRow): TenantShard => ({
  tenantId: tenant_id,
  shard,
  fenced: fenced === 1,
})

/** Which shards there are, and which tenant is in which. */
export function directory(db: Db) {
  return {
    ...moves(db),

    async shards(): Promise<Shard[]> {
      return [...rowsOf<Shard>(await db.execute('select name, url, state from shards order by added_ms, name'))]
    },

    async add({ name, url, state }: Shard, nowMs: number): Promise<void> {
      const sql = 'insert into shards (name, url, state, added_ms) values (?, ?, ?, ?)'
      await db.execute({ sql, args: [name, url, state, nowMs] })
    },

    async setState(name: string, state: Shard['state']): Promise<boolean> {
      const sql = 'update shards set state = ? where name = ?'
      return (await db.execute({ sql, args: [state, name] })).rowsAffected === 1
    },

    /** How many tenants each shard has. */
    async counts(): Promise<ReadonlyMap<string, number>> {
      const found = await db.execute('select shard, count(*) as n from shard_tenants group by shard')
      return new Map(rowsOf<{ shard: string; n: number }>(found).map(({ shard, n }) => [shard, n]))
    },

    async tenantsIn(shard: string): Promise<string[]> {
      const found = await db.execute({ sql: 'select tenant_id from shard_tenants where shard = ?', args: [shard] })
      return rowsOf<{ tenant_id: string }>(found).map(row => row.tenant_id)
    },

    async shardOf(tenantId: string): Promise<TenantShard | undefined> {
      const found = await db.execute({ sql: `${PLACED} where t.tenant_id = ?`, args: [tenantId] })
      return rowsOf<PlaceRow>(found).map(toTenantShard)[0]
    },

    async tenantOf(hash: string): Promise<string | undefined> {
      const found = await db.execute({ sql: 'select tenant_id from routes where hash = ?', args: [hash] })
      return rowsOf<{ tenant_id: string }>(found)[0]?.tenant_id
    },

    /** What a shard knows and the directory did not; what the directory says already stays. */
    async learn({ tenantId, shard, hash }: { tenantId: string; shard: string; hash?: string | undefined }) {
      const statements: InStatement[] = [
        {
          sql: 'insert into shard_tenants (tenant_id, shard) values (?, ?) on conflict do nothing',
          args: [tenantId, shard],
        },
      ]
      if (hash !== undefined) {
        const sql = 'insert into routes (hash, tenant_id) values (?, ?) on conflict do nothing'
        statements.push({ sql, args: [hash, tenantId] })
      }
      await db.write(statements)
    },

    /** Of two that ask with one key, both get the shard that the first one chose. */
    async placement(requestHash: string, shard: string, nowMs: number): Promise<string> {
      const [, , found] = await db.write([
        { sql: 'delete from placements where at_ms < ?', args: [nowMs - PLACEMENT_MS] },
        {
          sql: 'insert into placements (request_hash, shard, at_ms) values (?, ?, ?) on conflict do nothing',
          args: [requestHash, shard, nowMs],
        },
        { sql: 'select shard from placements where request_hash = ?', args: [requestHash] },
      ])
      return rowsOf<{ shard: string }>(found!)[0]!.shard
    },

    async forget(tenantId: string): Promise<void> {
      await db.write(
        ['delete from routes where tenant_id = ?', 'delete from shard_tenants where tenant_id = ?'].map(sql => ({
          sql,
          args: [tenantId],
        })),
      )
    },
  }
}

/** Longer than an Idempotency-Key is kept. */
const PLACEMENT_MS = 48 * 3_600_000

interface MoveRow {
  tenant_id: string
  from_shard: string
  to_shard: string
  state: Move['state']
}

const toMove = ({ tenant_id, from_shard, to_shard, state }: MoveRow): Move => ({
  tenantId: tenant_id,
  from: from_shard,
  to: to_shard,
  state,
})

function moves(db: Db) {
  return {
    async moves(): Promise<Move[]> {
      return rowsOf<MoveRow>(await db.execute('select * from moves order by started_ms')).map(toMove)
    },

    async move(tenantId: string): Promise<Move | undefined> {
      const found = await db.execute({ sql: 'select * from moves where tenant_id = ?', args: [tenantId] })
      return rowsOf<MoveRow>(found).map(toMove)[0]
    },

    /** Begins none where one is under way, or where the tenant has left. */
    async beginMove({ tenantId, from, to }: Omit<Move, 'state'>, nowMs: number): Promise<void> {
      await db.execute({
        sql: `insert into moves (tenant_id, from_shard, to_shard, state, started_ms) select ?1, ?2, ?3, 'copying', ?4
          where exists (select 1 from shard_tenants where tenant_id = ?1 and shard = ?2) on conflict do nothing`,
        args: [tenantId, from, to, nowMs],
      })
    },

    async setMove(tenantId: string, state: Move['state']): Promise<void> {
      await db.execute({ sql: 'update moves set state = ? where tenant_id = ?', args: [state, tenantId] })
    },

    /** From here on the tenant is at its new place, for every process. */
    async switchOver({ tenantId, to }: Pick<Move, 'tenantId' | 'to'>): Promise<void> {
      await db.write([
        { sql: 'update shard_tenants set shard = ? where tenant_id = ?', args: [to, tenantId] },
        { sql: "update moves set state = 'switched' where tenant_id = ?", args: [tenantId] },
      ])
    },

    async endMove(tenantId: string): Promise<void> {
      await db.execute({ sql: 'delete from moves where tenant_id = ?', args: [tenantId] })
    },
  }
}
