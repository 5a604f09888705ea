import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * People beside the owner: whether they may come in, the link with which each sets a password (one at a time, kept as a digest), and
 * the order of their list. A person without a password yet has an empty text there, which no password leads to.
 */
export const usersStep: Migration = {
  id: 16,
  name: 'users',
  sql: `alter table users add column disabled_ms integer;
create index users_list on users (tenant_id, created_ms, id);
drop index users_tenant;

create table user_links (
  user_id text primary key references users (id),
  hash text not null unique,
  expires_ms integer not null
) strict, without rowid;`,
}
