import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * `audit_log` holds a chain for each tenant, and outlives it. `audit_heads` is where each chain ends, so that a cut end shows.
 * `audit_intents` is written before an act is done and removed with the entry about it: what is left there was interrupted.
 */
export const auditStep: Migration = {
  id: 8,
  name: 'audit',
  sql: `create table audit_log (
  tenant_id text not null,
  seq integer not null,
  hash text not null,
  body text not null,
  primary key (tenant_id, seq)
) strict, without rowid;

create table audit_heads (
  tenant_id text primary key,
  seq integer not null,
  hash text not null
) strict, without rowid;

create table audit_intents (
  id text primary key,
  at_ms integer not null,
  entry text not null
) strict, without rowid;
create index audit_intents_old on audit_intents (at_ms);`,
}
