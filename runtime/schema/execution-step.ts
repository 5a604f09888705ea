import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * `runs` is what a control plane may know: ids, states, counters, times. `run_data` and everything below it belong to the
 * node that runs it. `due_ms` is the one answer to "who may take this run, and when": the time from which any owner may
 * claim it, which is the creation of a queued run, the end of a running one's lease, the wake-up of a parked one and the
 * expiry of a waiting one's approval; null when nothing but an outside event can move it.
 */
export const executionStep: Migration = {
  id: 3,
  name: 'execution',
  sql: `create table runs (
  id text primary key,
  tenant_id text not null,
  agent_name text not null,
  agent_id text not null,
  version_id text not null,
  status text not null,
  created_ms integer not null,
  updated_ms integer not null,
  started_ms integer,
  finished_ms integer,
  tokens_in integer not null default 0,
  tokens_out integer not null default 0,
  cost_nano integer not null default 0,
  error_code text,
  error_step text,
  labels text not null default '{}',
  trigger_kind text not null,
  trigger_ref text,
  parent_run_id text,
  depth integer not null default 0,
  session_id text,
  schedule_id text,
  forked_run text,
  forked_step text,
  node_id text,
  isolation text not null,
  isolation_used text,
  accel text,
  model text,
  budget_exceeded integer not null default 0,
  cancel_reason text,
  parked text,
  parked_until_ms integer,
  owner text,
  epoch integer not null default 0,
  due_ms integer,
  ending text,
  ran_ms integer not null default 0,
  recoveries integer not null default 0,
  recovery_seq integer not null default 0,
  event_count integer,
  head text
) strict;
create index runs_list on runs (tenant_id, created_ms, id);
create index runs_status on runs (tenant_id, status, created_ms, id);
create index runs_agent on runs (tenant_id, agent_name, created_ms, id);
create index runs_due on runs (due_ms) where due_ms is not null;
create index runs_owner on runs (owner) where owner is not null;
create index runs_open on runs (agent_id) where status in ('queued', 'running', 'waiting');
create index runs_parent on runs (parent_run_id, created_ms) where parent_run_id is not null;
create index runs_session on runs (session_id, created_ms) where session_id is not null;
create index runs_schedule on runs (schedule_id, created_ms) where schedule_id is not null;

create table run_data (
  run_id text primary key,
  input text not null,
  output text,
  error_message text
) strict, without rowid;

create table events (
  run_id text not null,
  seq integer not null,
  hash text not null,
  body text not null,
  primary key (run_id, seq)
) strict, without rowid;

create table blobs (
  run_id text not null,
  sha256 text not null,
  media_type text not null,
  content blob not null,
  primary key (run_id, sha256)
) strict;

create table approvals (
  id text primary key,
  tenant_id text not null,
  run_id text not null,
  agent_name text not null,
  step_id text not null,
  round integer not null,
  status text not null,
  reason text not null,
  prompt text not null,
  action text,
  created_ms integer not null,
  expires_ms integer not null,
  decided_ms integer,
  decided_by text,
  comment text,
  decision text
) strict;
create index approvals_list on approvals (tenant_id, created_ms, id);
create index approvals_pending on approvals (tenant_id, created_ms, id) where status = 'pending';
create unique index approvals_step on approvals (run_id, step_id, round);

create table signals (
  id text primary key,
  run_id text not null,
  name text not null,
  value text not null,
  created_ms integer not null
) strict;
create index signals_run on signals (run_id, name, id);`,
}
