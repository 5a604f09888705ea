const META = `create table router_meta (
  key text primary key,
  value text not null
) strict;`

/**
 * The sealed record is body, in canonical form; the other columns repeat what lists and sums read, and verify compares
 * them with it. Money is whole nano-USD. Ids and sessions are random text: indexed as they are, every row would dirty
 * a page of its own in each index (measured: 3 times the cost of a row). seq >> 10 keeps the inserts of one moment
 * together; a lookup asks the groups of 1,024 records from the newest to the oldest.
 */
const TRACES = `create table traces (
  tenant_id text not null,
  seq integer not null,
  trace_id text not null,
  ts_ms integer not null,
  session_id text not null,
  mode text not null,
  route_ix integer,
  served_from text not null,
  served_rung integer not null,
  served_model text,
  total_nano integer,
  gate_nano integer not null,
  baseline_nano integer,
  calibrated_nano integer,
  escalations integer not null,
  failovers integer not null,
  response_id text,
  upstream_request_id text,
  client_request_id text,
  gates text,
  body text not null,
  primary key (tenant_id, seq)
) strict;
create unique index traces_trace_id on traces (trace_id);
create index traces_time on traces (tenant_id, ts_ms, seq, mode, route_ix, served_from, served_rung, served_model,
  total_nano, gate_nano, baseline_nano, calibrated_nano, escalations, failovers);
create index traces_session on traces (tenant_id, seq >> 10, session_id);
create index traces_response on traces (tenant_id, seq >> 10, response_id) where response_id is not null;
create index traces_upstream on traces (tenant_id, seq >> 10, upstream_request_id) where upstream_request_id is not null;
create index traces_client on traces (tenant_id, seq >> 10, client_request_id) where client_request_id is not null;

create table feedback (
  tenant_id text not null,
  seq integer not null,
  feedback_id text not null unique,
  trace_id text not null,
  gate_id text not null,
  reporter text not null,
  verdict text not null,
  ts_ms integer not null,
  hash text not null,
  body text not null,
  primary key (tenant_id, seq)
) strict;
create index feedback_trace on feedback (tenant_id, trace_id, gate_id, reporter, seq);

create table checkpoints (
  ix integer primary key,
  tenant_id text not null,
  kind text not null,
  seq integer not null,
  digest text not null,
  copied integer not null default 0,
  body text not null
) strict;
create index checkpoints_tenant on checkpoints (tenant_id, ix);
create index checkpoints_kind on checkpoints (tenant_id, kind, ix);
create index checkpoints_uncopied on checkpoints (ix) where copied = 0;

create table signing_keys (
  key_id text primary key,
  public_key text not null,
  created_at text not null,
  retired_at text
) strict;

create table writer_lease (
  name text primary key,
  holder text not null,
  epoch integer not null,
  expires_ms integer not null,
  wanted_by text
) strict;`

const BUDGETS = `create table router_budgets (
  key text primary key,
  spent integer not null,
  updated_at text not null
) strict;
create index router_budgets_updated on router_budgets (updated_at);`

/**
 * A calibration is changed by compare and set: `previous` names the version that a change was made from, and a statement that
 * finds another puts null there, which undoes its transaction. An outcome's ix is its place among the scored answers of
 * its route; fails and passes count the reporters whose last word that is. Its score is text, since SQLite reads one decimal in
 * 4,000 a unit off. A calibration is its state, as JSON; t to p_value repeat what people look for. routing_configs tells which
 * route a receipt means after the config has changed.
 */
const CALIBRATION = `create table outcomes (
  tenant_id text not null,
  trace_id text not null,
  route_fp text not null,
  ix integer,
  rung integer not null,
  score text,
  fails integer not null,
  passes integer not null,
  primary key (tenant_id, trace_id)
) strict, without rowid;
create unique index outcomes_place on outcomes (tenant_id, route_fp, ix) where ix is not null;

create table calibration (
  tenant_id text not null,
  route_fp text not null,
  version integer not null,
  previous integer not null,
  state text not null,
  t real not null,
  n integer not null,
  k integer not null,
  certified_lambda real,
  p_value real,
  updated_at text not null,
  primary key (tenant_id, route_fp)
) strict;
create index calibration_version on calibration (version);

create table routing_configs (
  config_hash text primary key,
  used_ms integer not null,
  body text not null
) strict;`

/** Samples that ran on the top rung as well, beside the traces that they measure. Money is whole nano-USD. */
const SHADOWS = `create table shadows (
  tenant_id text not null,
  trace_id text not null,
  route_fp text not null,
  ts_ms integer not null,
  served_in integer not null,
  served_out integer not null,
  top_in integer not null,
  top_out integer not null,
  same_nano integer not null,
  top_nano integer not null,
  spent_nano integer not null,
  primary key (tenant_id, trace_id)
) strict, without rowid;
create index shadows_time on shadows (tenant_id, ts_ms);`

/**
 * What was saved on days that are over, counted from 1970 in UTC: sums of columns of traces, which follow from those. A day without a row is
 * summed from traces.
 */
const SAVINGS = `create table savings_days (
  tenant_id text not null,
  day integer not null,
  route text not null,
  model text not null,
  requests integer not null,
  unpriced integer not null,
  spent integer not null,
  gate integer not null,
  baseline integer not null,
  calibrated_requests integer not null,
  calibrated integer not null,
  calibrated_spent integer not null,
  primary key (tenant_id, day, route, model)
) strict, without rowid;`

/** The router's tables. */
export const routerBaseline = [META, TRACES, BUDGETS, CALIBRATION, SHADOWS, SAVINGS].join('\n\n')
