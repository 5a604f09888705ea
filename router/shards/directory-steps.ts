import type { Migration } from '../../shared/sql/migrate.ts'

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
