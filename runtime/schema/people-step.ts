import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * An e-mail is unique in its tenant and not over the store: a tenant does not learn who is known to another. SQLite drops no constraint of
 * a table, so it is made anew, and with it the two tables that refer to it: no statement leaves a row without what it refers to.
 */
export const peopleStep: Migration = {
  id: 29,
  name: 'e-mails by tenant',
  sql: `create table users_before as select * from users;
create table logins_before as select * from logins;
create table user_links_before as select * from user_links;
drop table user_links;
drop table logins;
drop table users;

create table users (
  id text primary key,
  tenant_id text not null references tenants (id),
  email text not null,
  name text not null,
  role text not null,
  password text not null,
  created_ms integer not null,
  disabled_ms integer,
  unique (email, tenant_id)
) strict;
create unique index users_owner on users (tenant_id) where role = 'owner';
create index users_list on users (tenant_id, created_ms, id);

create table logins (
  hash text primary key,
  user_id text not null references users (id),
  created_ms integer not null,
  expires_ms integer not null
) strict, without rowid;
create index logins_user on logins (user_id);
create index logins_expiry on logins (expires_ms);

create table user_links (
  user_id text primary key references users (id),
  hash text not null unique,
  expires_ms integer not null
) strict, without rowid;

insert into users (id, tenant_id, email, name, role, password, created_ms, disabled_ms)
  select id, tenant_id, email, name, role, password, created_ms, disabled_ms from users_before;
insert into logins (hash, user_id, created_ms, expires_ms) select hash, user_id, created_ms, expires_ms from logins_before;
insert into user_links (user_id, hash, expires_ms) select user_id, hash, expires_ms from user_links_before;
drop table user_links_before;
drop table logins_before;
drop table users_before;`,
}
