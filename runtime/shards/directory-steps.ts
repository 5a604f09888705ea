import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * The directory of an installation whose tenants live in several databases. `routes` are digests of what a request shows (an API key, a
 * login, a link, a node's token or id), each with the tenant it is of; a tenant is in one shard. `placements` is where a tenant was to be made,
 * by its Idempotency-Key. A row of `moves` stands from the first statement of a move until the old copy is deleted.
 */
const BASELINE = `create table shards (
  name text primary key,
  url text not null unique,
  state text not null check (state in ('open', 'closed')),
  added_ms integer not null
) strict;

create table shard_tenants (
  tenant_id text primary key,
  shard text not null references shards (name)
) strict, without rowid;
create index shard_tenants_shard on shard_tenants (shard);

create table routes (
  hash text primary key,
  tenant_id text not null
) strict, without rowid;
create index routes_tenant on routes (tenant_id);

create table placements (
  request_hash text primary key,
  shard text not null,
  at_ms integer not null
) strict, without rowid;

create table moves (
  tenant_id text primary key,
  from_shard text not null references shards (name),
  to_shard text not null references shards (name),
  state text not null check (state in ('copying', 'fencing', 'switched', 'back')),
  started_ms integer not null
) strict, without rowid;`

export const directorySteps: readonly Migration[] = [{ id: 1, name: 'baseline of 0.3.0', sql: BASELINE }]
