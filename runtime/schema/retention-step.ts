import type { Migration } from '../../shared/sql/migrate.ts'

/** Finds the runs of a version that ended before a day, which is how they are deleted. */
export const retentionStep: Migration = {
  id: 24,
  name: 'retention',
  sql: `create index runs_finished on runs (version_id, finished_ms) where finished_ms is not null;
create index sessions_stopped on sessions (version_id, stopped_ms) where stopped_ms is not null;`,
}
