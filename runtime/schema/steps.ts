import type { Migration } from '../../shared/sql/migrate.ts'

/** The runtime's tables, step by step. A released step is never edited: add one. */
export const runtimeSteps: readonly Migration[] = [
  {
    id: 1,
    name: 'meta',
    sql: `create table runtime_meta (
  key text primary key,
  value text not null
) strict;`,
  },
]
