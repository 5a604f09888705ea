import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * How models are reached and what agents may be given. Keys, headers and secrets are sealed; `key_hint` is what of a key may
 * be seen. A try of a provider stands apart from it, since one that the environment configures can be tried as well.
 */
export const settingsStep: Migration = {
  id: 4,
  name: 'settings',
  sql: `create table providers (
  tenant_id text not null references tenants (id) on delete cascade,
  provider text not null,
  base_url text,
  key_hint text,
  sealed_key text,
  sealed_headers text,
  created_ms integer not null,
  updated_ms integer not null,
  primary key (tenant_id, provider)
) strict, without rowid;

create table provider_tries (
  tenant_id text not null references tenants (id) on delete cascade,
  provider text not null,
  at_ms integer not null,
  success integer not null,
  primary key (tenant_id, provider)
) strict, without rowid;

create table model_settings (
  tenant_id text primary key references tenants (id) on delete cascade,
  settings text not null,
  updated_ms integer not null
) strict, without rowid;

create table secrets (
  tenant_id text not null references tenants (id) on delete cascade,
  name text not null,
  sealed text not null,
  updated_ms integer not null,
  primary key (tenant_id, name)
) strict, without rowid;`,
}
