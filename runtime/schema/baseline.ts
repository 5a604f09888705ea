/** Values of the installation as a whole, by name. */
const META = `create table runtime_meta (
  key text primary key,
  value text not null
) strict;`

/**
 * Who may call, what they own, and what they already asked for. Free texts (names, labels, descriptions, notes) are stored as JSON
 * text: it carries any character, where a plain text column ends at a NUL. `bound` in `idempotency` is the id of the object that a call
 * created, written in the same transaction as the object. An e-mail is unique in its tenant and not over the store: a tenant does not learn
 * who is known to another. A person without a password yet has an empty text there, which no password leads to; the link with which each
 * sets one is stored as a digest, one at a time.
 */
const ACCESS = `create table tenants (
  id text primary key,
  name text not null,
  created_ms integer not null
) strict;
insert into tenants (id, name, created_ms) values ('default', '"default"', unixepoch() * 1000);
create index tenants_list on tenants (created_ms, id);

create table api_keys (
  id text primary key,
  tenant_id text not null references tenants (id),
  name text not null,
  hash text not null unique,
  prefix text not null,
  scopes text not null,
  created_ms integer not null,
  created_by text not null,
  expires_ms integer,
  revoked_ms integer,
  used_ms integer
) strict;
create index api_keys_list on api_keys (tenant_id, created_ms, id);

create table setup_tokens (
  hash text primary key,
  expires_ms integer not null
) strict, without rowid;

create table agents (
  id text primary key,
  tenant_id text not null references tenants (id),
  name text not null,
  description text,
  labels text not null,
  current_version_id text not null,
  versions integer not null,
  created_ms integer not null,
  deleted_ms integer
) strict;
create unique index agents_name on agents (tenant_id, name) where deleted_ms is null;
create index agents_list on agents (tenant_id, created_ms, id) where deleted_ms is null;

create table agent_versions (
  id text primary key,
  tenant_id text not null,
  agent_id text not null references agents (id),
  number integer not null,
  manifest text not null,
  manifest_hash text not null,
  note text,
  created_ms integer not null,
  created_by text not null,
  box blob,
  box_pool text
) strict;
create unique index agent_versions_number on agent_versions (agent_id, number);
create index agent_versions_hash on agent_versions (agent_id, manifest_hash, number);

create table idempotency (
  tenant_id text not null,
  route text not null,
  key text not null,
  attempt text not null,
  body_hash text not null,
  started_ms integer not null,
  expires_ms integer not null,
  bound text,
  status integer,
  answer text,
  primary key (tenant_id, route, key)
) strict;
create index idempotency_expiry on idempotency (expires_ms);

create table users (
  id text primary key,
  tenant_id text not null references tenants (id),
  email text not null,
  name text not null,
  role text not null,
  password text not null,
  created_ms integer not null,
  disabled_ms integer,
  unique (email, tenant_id)
) strict;
create unique index users_owner on users (tenant_id) where role = 'owner';
create index users_list on users (tenant_id, created_ms, id);

create table logins (
  hash text primary key,
  user_id text not null references users (id),
  created_ms integer not null,
  expires_ms integer not null
) strict, without rowid;
create index logins_user on logins (user_id);
create index logins_expiry on logins (expires_ms);

create table user_links (
  user_id text primary key references users (id),
  hash text not null unique,
  expires_ms integer not null
) strict, without rowid;`

/**
 * `runs` is what a control plane may know: ids, states, counters, times. `run_data` and everything below it belong to the node that runs
 * it. `due_ms` is the time from which any owner may claim a run: the creation of a queued run, the end of a running one's lease, the wake-up
 * of a suspended one and the expiry of a waiting one's approval; null when nothing but an outside event can move it. `uncertain_*` are calls that a
 * crash cut off, at the most that they may have cost; `only_step` is the model step
 * after which a trial of it ends. `below_nano` is what the runs below it have cost, and theirs. The four parts are of
 * calls that were priced by class, so their sum is at most `cost_nano`. `sealed` of a blob says under which data key, and for which run, its
 * content was sealed; null: it stands in clear. Texts say so themselves. `tool_lists` are the tools that runs of an agent version were
 * offered, each list once under its digest, which the journals name. `events` has rowids: its rows are large, and without one each that is
 * added at its run's place moves its neighbours.
 */
const EXECUTION = `create table runs (
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
  only_step text,
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
  head text,
  uncertain_tokens integer not null default 0,
  uncertain_nano integer not null default 0,
  below_nano integer not null default 0,
  unpriced_calls integer not null default 0,
  input_nano integer not null default 0,
  cache_read_nano integer not null default 0,
  cache_write_nano integer not null default 0,
  output_nano integer not null default 0,
  cache_read_tokens integer not null default 0,
  cache_write_tokens integer not null default 0
) strict;
create index runs_list on runs (tenant_id, created_ms, id);
create index runs_status on runs (tenant_id, status, created_ms, id);
create index runs_agent on runs (tenant_id, agent_name, created_ms, id) where trigger_kind <> 'session';
create index runs_agent_turns on runs (tenant_id, agent_name, created_ms, id) where trigger_kind = 'session';
create index runs_due on runs (due_ms) where due_ms is not null;
create index runs_owner on runs (owner) where owner is not null;
create index runs_open on runs (agent_id) where status in ('queued', 'running', 'waiting');
create index runs_parent on runs (parent_run_id, created_ms) where parent_run_id is not null;
create index runs_session on runs (session_id, created_ms) where session_id is not null;
create index runs_schedule on runs (schedule_id, created_ms) where schedule_id is not null;
create index runs_version on runs (version_id, created_ms) where status in ('succeeded', 'failed');
create index runs_schedule_open on runs (schedule_id)
  where schedule_id is not null and status in ('queued', 'running', 'waiting');
create index runs_apart on runs (tenant_id, created_ms, id) where trigger_kind <> 'session';
create index runs_trigger on runs (tenant_id, trigger_kind, created_ms, id);
create index runs_agent_status on runs (tenant_id, agent_name, status, created_ms, id);
create index runs_finished on runs (version_id, finished_ms) where finished_ms is not null;
create index runs_ended on runs
  (tenant_id, finished_ms, trigger_kind, status, error_code, agent_name, model, cost_nano, started_ms, id) where finished_ms is not null;
create index runs_failed on runs (tenant_id, error_code, created_ms, id) where error_code is not null;
create index runs_turn on runs (tenant_id, agent_id, due_ms) where due_ms is not null;

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
) strict;

create table blobs (
  run_id text not null,
  sha256 text not null,
  media_type text not null,
  content blob not null,
  sealed text,
  primary key (run_id, sha256)
) strict;

create table tool_lists (
  version_id text not null,
  digest text not null,
  body text not null,
  primary key (version_id, digest)
) strict, without rowid;

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
create index signals_run on signals (run_id, name, id);`

/**
 * What runs are found by. `run_labels` is written and removed by triggers, in the statement that makes or removes a run, and costs a run
 * without labels nothing. `run_search` holds the words of runs that stand in the store in clear, and not their texts; it is written behind
 * the commits of runs. `doc` is the creation of the run and twenty bits of its id, so that entries have the order of the list. `is_final` is
 * 0 until the words of its end are in the index. Beginnings of words have indexes of their own, as a search by one would else gather
 * every run that it finds before the first is seen.
 */
const SEARCH = `create table run_labels (
  tenant text not null,
  name text not null,
  value text not null,
  made_ms integer not null,
  run_id text not null,
  primary key (tenant, name, value, made_ms, run_id)
) strict, without rowid;
create trigger run_labels_made after insert on runs when new.labels <> '{}' begin
  insert into run_labels (tenant, name, value, made_ms, run_id)
    select new.tenant_id, label.key, label.value, new.created_ms, new.id from json_each(new.labels) as label where true
    on conflict do nothing;
end;
create trigger run_labels_gone after delete on runs when old.labels <> '{}' begin
  delete from run_labels where (tenant, name, value, made_ms, run_id) in
    (select old.tenant_id, label.key, label.value, old.created_ms, old.id from json_each(old.labels) as label);
end;

create table run_search_docs (
  doc integer primary key,
  run_id text not null unique,
  is_final integer not null
) strict;
create index run_search_open on run_search_docs (is_final) where is_final = 0;
create virtual table run_search using fts5 (
  facts, words, content = '', contentless_delete = 1, prefix = '3 4 5 6 7 8 9 10 11 12',
  tokenize = 'unicode61 remove_diacritics 2'
);
create trigger run_search_gone after delete on runs begin
  delete from run_search where rowid in (select doc from run_search_docs where run_id = old.id);
  delete from run_search_docs where run_id = old.id;
end;`

/**
 * How models are reached and what agents may be given. Keys, headers and secrets are sealed; `key_hint` is what of a key may be seen. A try
 * of a provider stands apart from it, since one that the environment configures can be tried as well. `binding` says where a secret may go and what may
 * open it, as JSON; `{}`: anywhere, and every use.
 */
const SETTINGS = `create table providers (
  tenant_id text not null references tenants (id) on delete cascade,
  provider text not null,
  base_url text,
  key_hint text,
  sealed_key text,
  sealed_headers text,
  created_ms integer not null,
  updated_ms integer not null,
  primary key (tenant_id, provider)
) strict, without rowid;

create table provider_tries (
  tenant_id text not null references tenants (id) on delete cascade,
  provider text not null,
  at_ms integer not null,
  success integer not null,
  primary key (tenant_id, provider)
) strict, without rowid;

create table model_settings (
  tenant_id text primary key references tenants (id) on delete cascade,
  settings text not null,
  updated_ms integer not null
) strict, without rowid;

create table secrets (
  tenant_id text not null references tenants (id) on delete cascade,
  name text not null,
  sealed text not null,
  updated_ms integer not null,
  binding text not null default '{}',
  primary key (tenant_id, name)
) strict, without rowid;`

/**
 * What a run may cost, what it did cost, and the proof of it. A receipt outlives its run. `reservations` holds what open runs may still
 * spend: under the step id '' what is left of a run's forecast, under a step's own id the worst case of a call in flight, with the part of it
 * that was taken from the forecast. In `usage_days` runs are counted when they are made, under the model '', and once more as `ended` under
 * the model that answered last; `uncertain_*` is what interrupted calls may have cost.
 */
const GOVERNANCE = `create table receipt_keys (
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
  unpriced_calls integer not null default 0,
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
  request_id text,
  output_tokens integer,
  primary key (run_id, step_id)
) strict, without rowid;
create index reservations_agent on reservations (agent_id, tokens, cost_nano);

create table budget_notices (
  agent_id text not null,
  day text not null,
  dimension text not null,
  mark text not null,
  primary key (agent_id, day, dimension)
) strict, without rowid;`

/**
 * `due_ms` is the next window, null while a schedule is off; what a scan costs depends on what is due, never on what was. `revision`
 * counts every change of a row: a decision that was made on an older one is not carried out. A window is taken by the row in
 * `schedule_fires`, in the transaction that creates its run, so that of many instances one starts it. Where the agent belongs to a pool the
 * input is sealed to the key of that pool, and `input` is empty; its hash and its length are those of the canonical text.
 */
const SCHEDULES = `create table schedules (
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
  updated_ms integer not null,
  input_box blob,
  input_pool text,
  input_hash text,
  input_length integer
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
create index schedule_fires_old on schedule_fires (fired_ms);`

/**
 * `webhook_deliveries` is the outbox: one row for each event and each webhook that wants it, written in the transaction that makes the
 * event so. `due_ms` is when it is sent next, null once it is settled; taking one moves it on by a lease, so that what a process died over is
 * sent again.
 */
const WEBHOOKS = `create table webhooks (
  id text primary key,
  tenant_id text not null references tenants (id) on delete cascade,
  url text not null,
  events text not null,
  enabled integer not null,
  sealed_secret text not null,
  created_ms integer not null,
  updated_ms integer not null
) strict;
create index webhooks_list on webhooks (tenant_id, created_ms, id);

create table webhook_deliveries (
  webhook_id text not null references webhooks (id) on delete cascade,
  event_id text not null,
  type text not null,
  at_ms integer not null,
  data text not null,
  outcome text not null,
  attempt integer not null default 0,
  status integer,
  error text,
  due_ms integer,
  created_ms integer not null,
  primary key (webhook_id, event_id)
) strict;
create index webhook_deliveries_list on webhook_deliveries (webhook_id, created_ms, event_id);
create index webhook_deliveries_outcome on webhook_deliveries (webhook_id, outcome, created_ms, event_id);
create index webhook_deliveries_due on webhook_deliveries (due_ms) where due_ms is not null;
create index webhook_deliveries_turn on webhook_deliveries (webhook_id, due_ms) where due_ms is not null;
create index webhook_deliveries_old on webhook_deliveries (created_ms) where due_ms is null;`

/**
 * `audit_log` holds a chain for each tenant, and outlives it. `audit_heads` is where each chain ends, so that a cut end shows.
 * `audit_intents` is written before an act is done and removed with the entry about it: what is left there was interrupted.
 */
const AUDIT = `create table audit_log (
  tenant_id text not null,
  seq integer not null,
  hash text not null,
  body text not null,
  primary key (tenant_id, seq)
) strict, without rowid;

create table audit_heads (
  tenant_id text primary key,
  seq integer not null,
  hash text not null
) strict, without rowid;

create table audit_intents (
  id text primary key,
  at_ms integer not null,
  entry text not null
) strict, without rowid;
create index audit_intents_old on audit_intents (at_ms);`

/**
 * Conversations. `sessions` is what a control plane may know, except for its hint; a turn is a run, and what it was asked stands in
 * `run_data` only. A stream's ids are counted per session: `last_event` is the id of the last event that is kept, `base` what it was when a
 * turn began, and `event_id` the id under which the turn ended, null where there was no listener.
 */
const SESSIONS = `create table sessions (
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
create index sessions_stopped on sessions (version_id, stopped_ms) where stopped_ms is not null;

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
create index turns_event on turns (session_id, event_id) where event_id is not null;`

/**
 * `connectors` has one row for each connector of a tenant. `config` is what may be seen, with a mask in place of each secret, and
 * `missing` names what it lacks; the secrets themselves are one sealed text. `revision` grows with each change of the credentials, so that what
 * is known of older ones is not written over newer ones. `connector_apis` holds the chosen operations of a tenant's own connector, apart from
 * `connectors`, whose rows are read at each call. `tool_uses` numbers the calls of a day that a limit counts, each step once. `mcp_pins`
 * keeps what an agent version was shown of an MCP server when it first saw it: a server that says something else later is not called.
 * `oauth_rounds` are open rounds to a vendor's consent page and back: each state is known by its hash alone, is used once, and holds a sealed
 * verifier. While `refresh_until_ms` is ahead, some process is refreshing the tokens and no other one does: a vendor that rotates them takes
 * a second use of one for theft. `mcp_grants` is what the authorization server of an MCP server has granted to a tenant.
 */
const CONNECTORS = `create table connectors (
  tenant_id text not null references tenants (id) on delete cascade,
  connector_id text not null,
  id text not null unique,
  display_name text not null,
  auth_method text not null,
  status text not null,
  config text not null,
  missing text not null,
  sealed text not null,
  base_url text,
  expires_ms integer,
  revision integer not null,
  tested_ms integer,
  tested_ok integer,
  created_ms integer not null,
  updated_ms integer not null,
  refresh_until_ms integer,
  primary key (tenant_id, connector_id)
) strict;
create index connectors_list on connectors (tenant_id, created_ms, id);

create table tool_uses (
  agent_id text not null,
  day text not null,
  tool text not null,
  n integer not null,
  run_id text not null,
  step_id text not null,
  primary key (agent_id, day, tool, n),
  unique (run_id, step_id)
) strict, without rowid;

create table mcp_pins (
  version_id text not null,
  server text not null,
  hash text not null,
  definitions text not null,
  primary key (version_id, server)
) strict, without rowid;

create table oauth_rounds (
  state_hash text primary key,
  tenant_id text not null references tenants (id) on delete cascade,
  connector_id text not null,
  starter text not null,
  sealed text not null,
  expires_ms integer not null
) strict, without rowid;
create index oauth_rounds_end on oauth_rounds (expires_ms);

create table connector_apis (
  tenant_id text not null,
  connector_id text not null,
  api text not null,
  primary key (tenant_id, connector_id),
  foreign key (tenant_id, connector_id) references connectors (tenant_id, connector_id) on delete cascade
) strict;

create table mcp_grants (
  tenant_id text not null references tenants (id) on delete cascade,
  resource text not null,
  id text not null unique,
  issuer text not null,
  scope text,
  status text not null,
  sealed text not null,
  expires_ms integer,
  revision integer not null,
  refresh_until_ms integer,
  created_ms integer not null,
  updated_ms integer not null,
  primary key (tenant_id, resource)
) strict;
create index mcp_grants_list on mcp_grants (tenant_id, created_ms, id);`

/**
 * `data_keys` holds the keys that the keys of runs are derived from, each wrapped by the master key. `key_leases` are the processes that
 * hold the master key in memory: each that serves the store, and the one that changes the key.
 */
const SEALING = `create table data_keys (
  id text primary key,
  sealed text not null,
  created_ms integer not null
) strict, without rowid;

create table key_leases (
  holder text primary key,
  purpose text not null check (purpose in ('serve', 'rotate')),
  until_ms integer not null
) strict, without rowid;`

/**
 * Nodes elsewhere, and what a control plane may know of the runs they hold. Texts of runs stand here only sealed to the key of a pool,
 * and only until a node has them. `remote_runs` and `remote_events` stand beside `runs`; a row of `remote_events` is what one report said of the
 * events up to `seq`: a list of kind, step, attempt, time, hash, tokens in and out, and cost. `remote_sessions` are conversations that a node
 * holds; `node_frames` is what waits for a node. `pinned` is the node that alone may execute a run, since its journal is there.
 * `pool_credentials` are sealed to the key of a pool, so that a node that comes later gets them as well and this side cannot read them.
 * The tables `tunnel_*` are the other side, on a node: `tunnel_outbox` is what it has to report, written in the commits that make it so;
 * `tunnel_children` are the runs that one of its runs has asked its control plane for. Nodes of one pool may share a store: `node_id` of a
 * report is then the node that makes it, null where the store is a node's own, and `tunnel_nodes` says when each was last seen by the others.
 */
const NODES = `create table node_pools (
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
  lost_reported integer not null default 0,
  store_id text,
  peer_url text
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

create table remote_runs (
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
  node_signature text,
  pinned text,
  input_schedule text
) strict;
create index remote_runs_queue on remote_runs (tenant_id, pool, created_ms, run_id) where state = 'queued';
create index remote_runs_node on remote_runs (node_id, state) where node_id is not null;
create index remote_runs_ending on remote_runs (ending) where ending is not null;
create index remote_runs_deadline on remote_runs (dispatch_by_ms) where dispatch_by_ms is not null;

create table remote_events (
  run_id text not null,
  seq integer not null,
  events text not null,
  primary key (run_id, seq)
) strict;

create table tunnel_runs (
  run_id text primary key,
  epoch integer not null,
  node_id text,
  ask_budget integer not null default 0
) strict, without rowid;

create table tunnel_taken (
  id text primary key
) strict, without rowid;

create table tunnel_outbox (
  id integer primary key autoincrement,
  frame text not null,
  node_id text
) strict;

create table pool_credentials (
  tenant_id text not null,
  pool text not null,
  ref text not null,
  box blob not null,
  updated_ms integer not null,
  binding text not null default '{}',
  primary key (tenant_id, pool, ref)
) strict, without rowid;

create table node_credentials (
  node_id text not null,
  ref text not null,
  at_ms integer not null,
  error text,
  primary key (node_id, ref)
) strict, without rowid;

create table remote_sessions (
  session_id text primary key,
  tenant_id text not null,
  pool text not null,
  node_id text not null
) strict, without rowid;

create table tunnel_children (
  child_id text primary key,
  parent_id text not null,
  error_code text,
  error_message text
) strict, without rowid;
create index tunnel_children_parent on tunnel_children (parent_id);

create table tunnel_nodes (
  node_id text primary key,
  alive_ms integer not null
) strict, without rowid;`

/** The runtime's tables. */
export const runtimeBaseline = [
  META,
  ACCESS,
  EXECUTION,
  SEARCH,
  SETTINGS,
  GOVERNANCE,
  SCHEDULES,
  WEBHOOKS,
  AUDIT,
  SESSIONS,
  CONNECTORS,
  SEALING,
  NODES,
].join('\n\n')
