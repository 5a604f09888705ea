import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * Who may call, what they own, and what they already asked for. Free texts (names, labels, descriptions, notes) are
 * stored as JSON text: it carries any character, where a plain text column ends at a NUL. `bound` in `idempotency` is the
 * id of the object that a call created, written in the same transaction as the object.
 */
export const accessStep: Migration = {
  id: 2,
  name: 'access',
  sql: `create table tenants (
  id text primary key,
  name text not null,
  created_ms integer not null
) strict;
create index tenants_list on tenants (created_ms, id);
insert into tenants (id, name, created_ms) values ('default', '"default"', unixepoch() * 1000);

create table api_keys (
  id text primary key,
  tenant_id text not null references tenants (id),
  name text not null,
  hash text not null unique,
  prefix text not null,
  scopes text not null,
  created_ms integer not null,
  created_by text not null,
  expires_ms integer,
  revoked_ms integer,
  used_ms integer
) strict;
create index api_keys_list on api_keys (tenant_id, created_ms, id);

create table users (
  id text primary key,
  tenant_id text not null references tenants (id),
  email text not null unique,
  name text not null,
  role text not null,
  password text not null,
  created_ms integer not null
) strict;
create index users_tenant on users (tenant_id);
create unique index users_owner on users (tenant_id) where role = 'owner';

create table logins (
  hash text primary key,
  user_id text not null references users (id),
  created_ms integer not null,
  expires_ms integer not null
) strict, without rowid;
create index logins_user on logins (user_id);
create index logins_expiry on logins (expires_ms);

create table setup_tokens (
  hash text primary key,
  expires_ms integer not null
) strict, without rowid;

create table agents (
  id text primary key,
  tenant_id text not null references tenants (id),
  name text not null,
  description text,
  labels text not null,
  current_version_id text not null,
  versions integer not null,
  created_ms integer not null,
  deleted_ms integer
) strict;
create unique index agents_name on agents (tenant_id, name) where deleted_ms is null;
create index agents_list on agents (tenant_id, created_ms, id) where deleted_ms is null;

create table agent_versions (
  id text primary key,
  tenant_id text not null,
  agent_id text not null references agents (id),
  number integer not null,
  manifest text not null,
  manifest_hash text not null,
  note text,
  created_ms integer not null,
  created_by text not null
) strict;
create unique index agent_versions_number on agent_versions (agent_id, number);
create index agent_versions_hash on agent_versions (agent_id, manifest_hash, number);

create table idempotency (
  tenant_id text not null,
  route text not null,
  key text not null,
  attempt text not null,
  body_hash text not null,
  started_ms integer not null,
  expires_ms integer not null,
  bound text,
  status integer,
  answer text,
  primary key (tenant_id, route, key)
) strict;
create index idempotency_expiry on idempotency (expires_ms);`,
}
