import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * `mcp_pins` keeps what an agent version was shown of an MCP server when it first saw it: a server that says something else
 * later is not called. `oauth_rounds` are open rounds to a vendor's consent page and back: each state is known by
 * its hash alone, is used once, and holds a sealed verifier. While `refresh_until_ms` of a connector is ahead, some process is
 * refreshing its tokens and no other one does: a vendor that rotates them takes a second use of one for theft.
 */
export const mcpStep: Migration = {
  id: 12,
  name: 'mcp and oauth',
  sql: `create table mcp_pins (
  version_id text not null,
  server text not null,
  hash text not null,
  definitions text not null,
  primary key (version_id, server)
) strict, without rowid;

create table oauth_rounds (
  state_hash text primary key,
  tenant_id text not null references tenants (id) on delete cascade,
  connector_id text not null,
  starter text not null,
  sealed text not null,
  expires_ms integer not null
) strict, without rowid;
create index oauth_rounds_end on oauth_rounds (expires_ms);

alter table connectors add column refresh_until_ms integer;`,
}
