import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * `far_sessions`: conversations that a node holds; what is said stands there. `tunnel_children`: on a node, the runs that one of its runs has
 * asked its control plane for, until they are here or were refused.
 */
export const remoteTurnsStep: Migration = {
  id: 20,
  name: 'sessions and sub-agents on nodes',
  sql: `create table far_sessions (
  session_id text primary key,
  tenant_id text not null,
  pool text not null,
  node_id text not null
) strict, without rowid;

create table tunnel_children (
  child_id text primary key,
  parent_id text not null,
  error_code text,
  error_message text
) strict, without rowid;
create index tunnel_children_parent on tunnel_children (parent_id);`,
}
