import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * What a run may cost, what it did cost, and the proof of it. A receipt outlives its run. `reservations` holds what open runs may
 * still spend: under the step id '' what is left of a run's forecast, under a step's own id the worst case of a call in flight,
 * with the part of it that was taken from the forecast. In `usage_days` runs are counted when they are made, under the model '', and once
 * more as `ended` under the model that answered last; `uncertain_*` is what interrupted calls may have cost.
 */
export const governanceStep: Migration = {
  id: 5,
  name: 'governance',
  sql: `create table receipt_keys (
  key_id text primary key,
  public_key text not null,
  sealed_seed text,
  status text not null,
  not_before_ms integer not null,
  not_after_ms integer
) strict, without rowid;
create unique index receipt_keys_active on receipt_keys (status) where status = 'active';

create table receipts (
  run_id text primary key,
  tenant_id text not null,
  issued_ms integer not null,
  envelope text not null
) strict, without rowid;

create table budgets (
  agent_id text primary key,
  tenant_id text not null,
  agent_name text not null,
  cost_nano_day integer,
  cost_nano_run integer,
  tokens_day integer,
  runs_day integer,
  hard_fail integer not null,
  notify_pct integer not null,
  tool_limits text not null,
  created_ms integer not null,
  updated_ms integer not null
) strict, without rowid;
create index budgets_list on budgets (tenant_id, created_ms);

create table usage_days (
  agent_id text not null,
  day text not null,
  model text not null,
  tenant_id text not null,
  agent_name text not null,
  runs integer not null default 0,
  ended integer not null default 0,
  tokens_in integer not null default 0,
  tokens_out integer not null default 0,
  cost_nano integer not null default 0,
  uncertain_tokens integer not null default 0,
  uncertain_nano integer not null default 0,
  primary key (agent_id, day, model)
) strict, without rowid;
create index usage_days_tenant on usage_days (tenant_id, day);

create table reservations (
  run_id text not null,
  step_id text not null,
  agent_id text not null,
  attempt integer not null default 1,
  tokens integer not null,
  cost_nano integer not null,
  moved_tokens integer not null default 0,
  moved_nano integer not null default 0,
  primary key (run_id, step_id)
) strict, without rowid;
create index reservations_agent on reservations (agent_id, tokens, cost_nano);

create table budget_notices (
  agent_id text not null,
  day text not null,
  dimension text not null,
  mark text not null,
  primary key (agent_id, day, dimension)
) strict, without rowid;

create index runs_version on runs (version_id, created_ms) where status in ('succeeded', 'failed');`,
}
