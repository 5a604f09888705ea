import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * The input of a schedule whose agent belongs to a pool, sealed to the key of that pool; `input` is empty then. Its hash and its
 * length are those of the canonical text. `input_schedule` of a run: its input is sealed for that schedule and not for the run.
 */
export const sealedSchedulesStep: Migration = {
  id: 26,
  name: 'inputs of schedules sealed to pools',
  sql: `alter table schedules add column input_box blob;
alter table schedules add column input_pool text;
alter table schedules add column input_hash text;
alter table schedules add column input_length integer;
alter table far_runs add column input_schedule text;`,
}
