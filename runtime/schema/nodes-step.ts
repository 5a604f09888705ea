import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * Nodes elsewhere, and what a control plane may know of the runs they hold. Texts of runs stand here only sealed to the key of a
 * pool, and only until a node has them. `far_runs` and `far_events` stand beside `runs`; `node_frames` is what waits for a node.
 * `tunnel_outbox` is the other side: what a node has to tell, written in the commits that make it so.
 */
export const nodesStep: Migration = {
  id: 13,
  name: 'nodes',
  sql: `create table node_pools (
  tenant_id text not null,
  name text not null,
  public_key blob not null,
  created_ms integer not null,
  primary key (tenant_id, name)
) strict;

create table nodes (
  id text primary key,
  tenant_id text not null,
  name text not null,
  pool text not null,
  labels text not null,
  created_ms integer not null,
  enrol_hash text,
  enrol_expires_ms integer,
  enrolled_ms integer,
  sign_key blob,
  box_key blob,
  version text,
  os text,
  arch text,
  vcpus real,
  memory_mb integer,
  slots integer not null default 0,
  backends text not null default '[]',
  draining integer not null default 0,
  signed_off integer not null default 0,
  last_seen_ms integer,
  active_runs integer not null default 0,
  lost_told integer not null default 0
) strict;
create index nodes_list on nodes (tenant_id, created_ms, id);
create unique index nodes_enrol on nodes (enrol_hash) where enrol_hash is not null;

create table node_tokens (
  hash text primary key,
  node_id text not null,
  expires_ms integer not null
) strict, without rowid;

create table node_nonces (
  node_id text not null,
  nonce text not null,
  at_ms integer not null,
  primary key (node_id, nonce)
) strict, without rowid;

create table node_frames (
  id integer primary key autoincrement,
  node_id text not null,
  frame blob not null
) strict;
create index node_frames_node on node_frames (node_id, id);

create table far_runs (
  run_id text primary key,
  tenant_id text not null,
  pool text not null,
  isolation text not null,
  state text not null,
  node_id text,
  epoch integer not null default 1,
  created_ms integer not null,
  dispatch_by_ms integer,
  input_sealed blob,
  input_hash text not null,
  output_hash text,
  event_seq integer not null default 0,
  tip text not null,
  head_known integer not null default 0,
  models text not null default '[]',
  ending text,
  error_message text,
  node_key text,
  node_signature text
) strict;
create index far_runs_queue on far_runs (tenant_id, pool, created_ms, run_id) where state = 'queued';
create index far_runs_node on far_runs (node_id, state) where node_id is not null;
create index far_runs_ending on far_runs (ending) where ending is not null;
create index far_runs_deadline on far_runs (dispatch_by_ms) where dispatch_by_ms is not null;

create table far_events (
  run_id text not null,
  seq integer not null,
  kind text not null,
  step_id text not null,
  attempt integer not null,
  at text not null,
  hash text not null,
  tokens_in integer not null,
  tokens_out integer not null,
  cost_nano integer not null,
  primary key (run_id, seq)
) strict, without rowid;

create table tunnel_runs (
  run_id text primary key,
  epoch integer not null
) strict, without rowid;

create table tunnel_taken (
  id text primary key
) strict, without rowid;

create table tunnel_outbox (
  id integer primary key autoincrement,
  frame text not null
) strict;`,
}
