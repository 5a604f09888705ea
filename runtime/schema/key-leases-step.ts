import type { Migration } from '../../shared/sql/migrate.ts'

/** The processes that hold the master key of a store in memory: each that serves it, and the one that changes the key. */
export const keyLeasesStep: Migration = {
  id: 23,
  name: 'leases of the master key',
  sql: `create table key_leases (
  holder text primary key,
  purpose text not null check (purpose in ('serve', 'rotate')),
  until_ms integer not null
) strict, without rowid;`,
}
