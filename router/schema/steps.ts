import type { Migration } from '../../shared/sql/migrate.ts'

/** The router's tables, step by step. A released step is never edited: add one. */
export const routerSteps: readonly Migration[] = [
  {
    id: 1,
    name: 'meta',
    sql: `create table router_meta (
  key text primary key,
  value text not null
) strict;`,
  },
]
