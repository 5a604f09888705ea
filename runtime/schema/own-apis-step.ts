import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * `connector_apis` holds the chosen operations of a tenant's own connector, apart from `connectors`, whose rows are read at each
 * call. `mcp_grants` is what the authorization server of an MCP server has granted to a tenant: one for each server, all of it
 * in one sealed text, and with the same turns for a refresh as `connectors` has.
 */
export const ownApisStep: Migration = {
  id: 15,
  name: 'own apis and mcp grants',
  sql: `create table connector_apis (
  tenant_id text not null,
  connector_id text not null,
  api text not null,
  primary key (tenant_id, connector_id),
  foreign key (tenant_id, connector_id) references connectors (tenant_id, connector_id) on delete cascade
) strict;

create table mcp_grants (
  tenant_id text not null references tenants (id) on delete cascade,
  resource text not null,
  id text not null unique,
  issuer text not null,
  scope text,
  status text not null,
  sealed text not null,
  expires_ms integer,
  revision integer not null,
  refresh_until_ms integer,
  created_ms integer not null,
  updated_ms integer not null,
  primary key (tenant_id, resource)
) strict;
create index mcp_grants_list on mcp_grants (tenant_id, created_ms, id);`,
}
