import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * Nodes of one pool with one store. `node_id` of what is to be told, and of a run that was ordered, is the node that speaks of it, null where
 * the store is a node's own; `tunnel_nodes` says when each was last seen by the others. At the control plane: which store a node says it has.
 */
export const sharedPoolStep: Migration = {
  id: 21,
  name: 'nodes that share a store',
  sql: `alter table tunnel_outbox add column node_id text;
alter table tunnel_runs add column node_id text;
alter table nodes add column store_id text;

create table tunnel_nodes (
  node_id text primary key,
  alive_ms integer not null
) strict, without rowid;`,
}
