import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * Conversations. `sessions` is what a control plane may know, except for its hint; a turn is a run, and what it was asked stands
 * in `run_data` only. A stream's ids are counted per session: `last_event` is the id of the last event that is kept, `base`
 * what it was when a turn began, and `event_id` the id under which the turn ended, null where there was no listener.
 */
export const sessionsStep: Migration = {
  id: 9,
  name: 'sessions',
  sql: `create table sessions (
  id text primary key,
  tenant_id text not null,
  agent_name text not null,
  agent_id text not null,
  version_id text not null,
  status text not null,
  title text,
  labels text not null,
  environment text,
  system_hint text,
  turn_id text,
  turn_count integer not null default 0,
  tokens_in integer not null default 0,
  tokens_out integer not null default 0,
  cost_nano integer not null default 0,
  last_event integer not null default 0,
  created_ms integer not null,
  updated_ms integer not null,
  stopped_ms integer,
  stop_reason text
) strict;
create index sessions_list on sessions (tenant_id, created_ms, id);
create index sessions_agent on sessions (tenant_id, agent_name, created_ms, id);
create index sessions_open on sessions (agent_id) where status <> 'stopped';

create table turns (
  run_id text primary key,
  session_id text not null,
  number integer not null,
  base integer not null,
  created_ms integer not null,
  status text not null,
  ended_ms integer,
  event_id integer,
  text text,
  tool_calls text,
  error text,
  tokens_in integer not null default 0,
  tokens_out integer not null default 0,
  cost_nano integer not null default 0
) strict, without rowid;
create unique index turns_session on turns (session_id, number);
create index turns_event on turns (session_id, event_id) where event_id is not null;`,
}
