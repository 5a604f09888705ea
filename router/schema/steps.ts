import type { Migration } from '../../shared/sql/migrate.ts'
import { routerBaseline } from './baseline.ts'

/**
 * What of evals adds up over the records of a day that is over, as JSON. It is written with the rows of savings_days for
 * that day, and deleted with them.
 */
const EVALS = `create table evals_days (
  tenant_id text not null,
  day integer not null,
  sums text not null,
  primary key (tenant_id, day)
) strict;
create trigger evals_days_go after delete on savings_days begin
  delete from evals_days where tenant_id = old.tenant_id and day = old.day;
end;`

/** When the call of an answer began, and the mark of its session: both are missing for outcomes from before this step. */
const OUTCOME_AGES = `alter table outcomes add column answered_ms integer;
alter table outcomes add column session text;
create index outcomes_age on outcomes (tenant_id, route_fp, answered_ms, trace_id) where answered_ms is not null;`

/** The router's tables, step by step, from 0.3.0 on. A released step is never edited: add one. */
export const routerSteps: readonly Migration[] = [
  { id: 100, name: 'baseline of 0.3.0', sql: routerBaseline },
  { id: 101, name: 'evals of days that are over', sql: EVALS },
  { id: 102, name: 'ages of outcomes', sql: OUTCOME_AGES },
]
