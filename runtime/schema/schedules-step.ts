import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * `due_ms` is the next window, null while a schedule is off; what a scan costs depends on what is due, never on what was.
 * `revision` counts every change of a row: a decision that was made on an older one is not carried out. A window is taken by
 * the row in `schedule_fires`, in the transaction that creates its run, so that of many instances one starts it.
 */
export const schedulesStep: Migration = {
  id: 6,
  name: 'schedules',
  sql: `create table schedules (
  id text primary key,
  tenant_id text not null references tenants (id) on delete cascade,
  name text,
  agent_name text not null,
  cron_expr text not null,
  timezone text,
  effective_zone text not null,
  input text not null,
  enabled integer not null,
  overlap text not null,
  catch_up text not null,
  catch_up_limit integer not null,
  due_ms integer,
  pending_ms integer,
  last_fired_ms integer,
  last_run_id text,
  last_error text,
  revision integer not null default 1,
  created_ms integer not null,
  updated_ms integer not null
) strict;
create index schedules_list on schedules (tenant_id, created_ms, id);
create index schedules_agent on schedules (tenant_id, agent_name);
create index schedules_due on schedules (due_ms) where due_ms is not null;
create index schedules_pending on schedules (pending_ms) where pending_ms is not null;

create table schedule_fires (
  schedule_id text not null,
  window_ms integer not null,
  fired_ms integer not null,
  outcome text not null,
  run_id text,
  reason text,
  primary key (schedule_id, window_ms)
) strict, without rowid;
create unique index schedule_fires_run on schedule_fires (run_id) where run_id is not null;
create index schedule_fires_old on schedule_fires (fired_ms);

create index runs_schedule_open on runs (schedule_id)
  where schedule_id is not null and status in ('queued', 'running', 'waiting');`,
}
