import { type Db, rowsOf } from '../../shared/sql/db.ts'
import type { Migration } from '../../shared/sql/migrate.ts'

export interface RouterShard {
  name: string
  url: string
  /** A closed shard gets no new tenants. */
  state: 'open' | 'closed'
}

export type RouterDirectory = ReturnType<typeof routerDirectory>

/** In the open shard with the fewest, in one statement: of two processes that ask at once, both get what the first one chose. */
const PLACE = `insert into router_shard_tenants (tenant_id, shard)
  select ?1, s.name from router_shards as s
    where s.state = 'open' order by (select count(*) from router_shard_tenants as t where t.shard = s.name), s.added_ms, s.name limit 1
  on conflict do nothing`

/** Which shards a router has, and which tenant is in which. */
export function routerDirectory(db: Db) {
  async function places(): Promise<Map<string, string>> {
    const found = await db.execute('select tenant_id, shard from router_shard_tenants')
    return new Map(
      rowsOf<{ tenant_id: string; shard: string }>(found).map(({ tenant_id, shard }) => [tenant_id, shard]),
    )
  }

  return {
    async shards(): Promise<RouterShard[]> {
      const found = await db.execute('select name, url, state from router_shards order by added_ms, name')
      return [...rowsOf<RouterShard>(found)]
    },

    async add({ name, url, state }: RouterShard, tenants: readonly string[], now: Date): Promise<void> {
      await db.write([
        {
          sql: 'insert into router_shards (name, url, state, added_ms) values (?, ?, ?, ?)',
          args: [name, url, state, now.getTime()],
        },
        ...tenants.map(tenant => ({
          sql: 'insert into router_shard_tenants (tenant_id, shard) values (?, ?)',
          args: [tenant, name],
        })),
      ])
    },

    async setState(name: string, state: RouterShard['state']): Promise<boolean> {
      const sql = 'update router_shards set state = ? where name = ?'
      return (await db.execute({ sql, args: [state, name] })).rowsAffected === 1
    },

    /** The shard of each tenant. */
    places,

    /** The same once each of these has a shard; without an open shard a new one has none. */
    async place(tenants: readonly string[]): Promise<Map<string, string>> {
      const known = await places()
      const fresh = tenants.filter(tenant => !known.has(tenant))
      if (fresh.length === 0) return known
      await db.write(fresh.map(tenant => ({ sql: PLACE, args: [tenant] })))
      return places()
    },
  }
}

/**
 * The directory of a router whose tenants live in several databases. A tenant is in one shard, from its first call on. `router_budgets` is
 * what is spent over all tenants, as each store has what its own have spent.
 */
const BASELINE = `create table router_shards (
  name text primary key,
  url text not null unique,
  state text not null check (state in ('open', 'closed')),
  added_ms integer not null
) strict;

create table router_shard_tenants (
  tenant_id text primary key,
  shard text not null references router_shards (name)
) strict, without rowid;
create index router_shard_tenants_shard on router_shard_tenants (shard);

create table router_budgets (
  key text primary key,
  spent integer not null,
  updated_at text not null
) strict;
create index router_budgets_updated on router_budgets (updated_at);`

export const routerDirectorySteps: readonly Migration[] = [{ id: 1, name: 'baseline of 0.3.0', sql: BASELINE }]
