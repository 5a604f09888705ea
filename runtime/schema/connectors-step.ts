import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * `connectors` has one row for each connector of a tenant. `config` is what may be seen, with a mask in place of each secret,
 * and `missing` names what it lacks; the secrets themselves are one sealed text. `revision` grows with each change of the credentials, so that what is known of
 * older ones is not written over newer ones. `tool_uses` numbers the calls of a day that a limit counts, each step once.
 */
export const connectorsStep: Migration = {
  id: 10,
  name: 'connectors',
  sql: `create table connectors (
  tenant_id text not null references tenants (id) on delete cascade,
  connector_id text not null,
  id text not null unique,
  display_name text not null,
  auth_method text not null,
  status text not null,
  config text not null,
  missing text not null,
  sealed text not null,
  base_url text,
  expires_ms integer,
  revision integer not null,
  tested_ms integer,
  tested_ok integer,
  created_ms integer not null,
  updated_ms integer not null,
  primary key (tenant_id, connector_id)
) strict;
create index connectors_list on connectors (tenant_id, created_ms, id);

create table tool_uses (
  agent_id text not null,
  day text not null,
  tool text not null,
  n integer not null,
  run_id text not null,
  step_id text not null,
  primary key (agent_id, day, tool, n),
  unique (run_id, step_id)
) strict, without rowid;`,
}
