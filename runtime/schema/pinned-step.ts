import type { Migration } from '../../shared/sql/migrate.ts'

/** The node that alone may execute a run: the journal that it begins with is there. */
export const pinnedStep: Migration = {
  id: 19,
  name: 'pinned runs',
  sql: 'alter table far_runs add column pinned text;',
}
