import type { Migration } from '../../shared/sql/migrate.ts'

/** Where a secret may go and what may open it, as JSON; `{}`: anywhere, and every use. The value stays sealed beside it. */
export const secretBindingsStep: Migration = {
  id: 28,
  name: 'bindings of secrets',
  sql: `alter table secrets add column binding text not null default '{}';
alter table pool_credentials add column binding text not null default '{}';`,
}
