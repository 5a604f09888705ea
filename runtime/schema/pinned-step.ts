import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * The node that alone may execute a run: the journal that it begins with is there. And what the nodes of a pool were given: sealed to
 * the key of the pool, so that a node that comes later gets it as well and this side cannot read it. The same key seals the texts of agent
 * versions that only its nodes run.
 */
export const pinnedStep: Migration = {
  id: 19,
  name: 'pinned runs, and what is sealed to pools',
  sql: `alter table far_runs add column pinned text;
alter table agent_versions add column box blob;
alter table agent_versions add column box_pool text;

create table pool_credentials (
  tenant_id text not null,
  pool text not null,
  ref text not null,
  box blob not null,
  updated_ms integer not null,
  primary key (tenant_id, pool, ref)
) strict, without rowid;

create table node_credentials (
  node_id text not null,
  ref text not null,
  at_ms integer not null,
  error text,
  primary key (node_id, ref)
) strict, without rowid;`,
}
