import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * `data_keys` holds the keys that the keys of runs are derived from, each wrapped by the master key. `sealed` of a blob says under
 * which of them, and for which run, its content was sealed; null: it stands in clear. Texts say so themselves.
 */
export const sealingStep: Migration = {
  id: 11,
  name: 'sealing',
  sql: `create table data_keys (
  id text primary key,
  sealed text not null,
  created_ms integer not null
) strict, without rowid;
alter table blobs add column sealed text;`,
}
