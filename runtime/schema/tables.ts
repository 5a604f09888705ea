import { integer, real, text } from 'drizzle-orm/sqlite-core'
import type { ListedKey } from '../../shared/sign/keyring.ts'
import { bytes, table } from '../../shared/sql/row-types.ts'
import type { ApprovalReason, ApprovalStatus } from '../../shared/wire/runtime/approval.ts'
import type { Isolation } from '../../shared/wire/runtime/isolation.ts'
import type { ProviderId } from '../../shared/wire/runtime/model-name.ts'
import type { Run, RunErrorCode, RunStatus } from '../../shared/wire/runtime/run.ts'
import type { Fire, Schedule } from '../../shared/wire/runtime/schedule.ts'
import type { SessionStatus } from '../../shared/wire/runtime/session.ts'
import type { Delivery } from '../../shared/wire/runtime/webhook.ts'

/** The columns of the runtime's tables, for the types of rows; a test holds them to baseline.ts, which makes the tables. */

export const meta = table('runtime_meta', {
  key: text().notNull(),
  value: text().notNull(),
})

export const tenants = table('tenants', {
  id: text().notNull(),
  name: text().notNull(),
  created_ms: integer().notNull(),
})

export const apiKeys = table('api_keys', {
  id: text().notNull(),
  tenant_id: text().notNull(),
  name: text().notNull(),
  hash: text().notNull(),
  prefix: text().notNull(),
  scopes: text().notNull(),
  created_ms: integer().notNull(),
  created_by: text().notNull(),
  expires_ms: integer(),
  revoked_ms: integer(),
  used_ms: integer(),
})

export const setupTokens = table('setup_tokens', {
  hash: text().notNull(),
  expires_ms: integer().notNull(),
})

export const agents = table('agents', {
  id: text().notNull(),
  tenant_id: text().notNull(),
  name: text().notNull(),
  description: text(),
  labels: text().notNull(),
  current_version_id: text().notNull(),
  versions: integer().notNull(),
  created_ms: integer().notNull(),
  deleted_ms: integer(),
})

export const agentVersions = table('agent_versions', {
  id: text().notNull(),
  tenant_id: text().notNull(),
  agent_id: text().notNull(),
  number: integer().notNull(),
  manifest: text().notNull(),
  manifest_hash: text().notNull(),
  note: text(),
  created_ms: integer().notNull(),
  created_by: text().notNull(),
  box: bytes(),
  box_pool: text(),
})

export const idempotency = table('idempotency', {
  tenant_id: text().notNull(),
  route: text().notNull(),
  key: text().notNull(),
  attempt: text().notNull(),
  body_hash: text().notNull(),
  started_ms: integer().notNull(),
  expires_ms: integer().notNull(),
  bound: text(),
  status: integer(),
  answer: text(),
})

export const users = table('users', {
  id: text().notNull(),
  tenant_id: text().notNull(),
  email: text().notNull(),
  name: text().notNull(),
  role: text().notNull(),
  password: text().notNull(),
  created_ms: integer().notNull(),
  disabled_ms: integer(),
})

export const logins = table('logins', {
  hash: text().notNull(),
  user_id: text().notNull(),
  created_ms: integer().notNull(),
  expires_ms: integer().notNull(),
})

export const userLinks = table('user_links', {
  user_id: text().notNull(),
  hash: text().notNull(),
  expires_ms: integer().notNull(),
})

export const runs = table('runs', {
  id: text().notNull(),
  tenant_id: text().notNull(),
  agent_name: text().notNull(),
  agent_id: text().notNull(),
  version_id: text().notNull(),
  status: text().$type<RunStatus>().notNull(),
  created_ms: integer().notNull(),
  updated_ms: integer().notNull(),
  started_ms: integer(),
  finished_ms: integer(),
  tokens_in: integer().notNull(),
  tokens_out: integer().notNull(),
  cost_nano: integer().notNull(),
  error_code: text().$type<RunErrorCode>(),
  error_step: text(),
  labels: text().notNull(),
  trigger_kind: text().$type<Run['trigger']['kind']>().notNull(),
  trigger_ref: text(),
  parent_run_id: text(),
  depth: integer().notNull(),
  session_id: text(),
  schedule_id: text(),
  forked_run: text(),
  forked_step: text(),
  only_step: text(),
  node_id: text(),
  isolation: text().$type<Isolation>().notNull(),
  isolation_used: text().$type<NonNullable<Run['isolation']['used']>>(),
  accel: text(),
  model: text(),
  budget_exceeded: integer().notNull(),
  cancel_reason: text(),
  parked: text().$type<NonNullable<Run['parked']>['reason']>(),
  parked_until_ms: integer(),
  owner: text(),
  epoch: integer().notNull(),
  due_ms: integer(),
  ending: text(),
  ran_ms: integer().notNull(),
  recoveries: integer().notNull(),
  recovery_seq: integer().notNull(),
  event_count: integer(),
  head: text(),
  uncertain_tokens: integer().notNull(),
  uncertain_nano: integer().notNull(),
  below_nano: integer().notNull(),
  unpriced_calls: integer().notNull(),
  input_nano: integer().notNull(),
  cache_read_nano: integer().notNull(),
  cache_write_nano: integer().notNull(),
  output_nano: integer().notNull(),
  cache_read_tokens: integer().notNull(),
  cache_write_tokens: integer().notNull(),
})

export const runLabels = table('run_labels', {
  tenant: text().notNull(),
  name: text().notNull(),
  value: text().notNull(),
  made_ms: integer().notNull(),
  run_id: text().notNull(),
})

export const runSearchDocs = table('run_search_docs', {
  doc: integer().notNull(),
  run_id: text().notNull(),
  is_final: integer().notNull(),
})

export const runData = table('run_data', {
  run_id: text().notNull(),
  input: text().notNull(),
  output: text(),
  error_message: text(),
})

export const events = table('events', {
  run_id: text().notNull(),
  seq: integer().notNull(),
  hash: text().notNull(),
  body: text().notNull(),
})

export const blobs = table('blobs', {
  run_id: text().notNull(),
  sha256: text().notNull(),
  media_type: text().notNull(),
  content: bytes().notNull(),
  sealed: text(),
})

export const toolLists = table('tool_lists', {
  version_id: text().notNull(),
  digest: text().notNull(),
  body: text().notNull(),
})

export const approvals = table('approvals', {
  id: text().notNull(),
  tenant_id: text().notNull(),
  run_id: text().notNull(),
  agent_name: text().notNull(),
  step_id: text().notNull(),
  round: integer().notNull(),
  status: text().$type<ApprovalStatus>().notNull(),
  reason: text().$type<ApprovalReason>().notNull(),
  prompt: text().notNull(),
  action: text(),
  created_ms: integer().notNull(),
  expires_ms: integer().notNull(),
  decided_ms: integer(),
  decided_by: text(),
  comment: text(),
  decision: text(),
})

export const signals = table('signals', {
  id: text().notNull(),
  run_id: text().notNull(),
  name: text().notNull(),
  value: text().notNull(),
  created_ms: integer().notNull(),
})

export const providers = table('providers', {
  tenant_id: text().notNull(),
  provider: text().$type<ProviderId>().notNull(),
  base_url: text(),
  key_hint: text(),
  sealed_key: text(),
  sealed_headers: text(),
  created_ms: integer().notNull(),
  updated_ms: integer().notNull(),
})

export const providerTries = table('provider_tries', {
  tenant_id: text().notNull(),
  provider: text().$type<ProviderId>().notNull(),
  at_ms: integer().notNull(),
  success: integer().notNull(),
})

export const modelSettings = table('model_settings', {
  tenant_id: text().notNull(),
  settings: text().notNull(),
  updated_ms: integer().notNull(),
})

export const secrets = table('secrets', {
  tenant_id: text().notNull(),
  name: text().notNull(),
  sealed: text().notNull(),
  updated_ms: integer().notNull(),
  binding: text().notNull(),
})

export const receiptKeys = table('receipt_keys', {
  key_id: text().notNull(),
  public_key: text().notNull(),
  sealed_seed: text(),
  status: text().$type<ListedKey['status']>().notNull(),
  not_before_ms: integer().notNull(),
  not_after_ms: integer(),
})

export const receipts = table('receipts', {
  run_id: text().notNull(),
  tenant_id: text().notNull(),
  issued_ms: integer().notNull(),
  envelope: text().notNull(),
})

export const budgets = table('budgets', {
  agent_id: text().notNull(),
  tenant_id: text().notNull(),
  agent_name: text().notNull(),
  cost_nano_day: integer(),
  cost_nano_run: integer(),
  tokens_day: integer(),
  runs_day: integer(),
  hard_fail: integer().notNull(),
  notify_pct: integer().notNull(),
  tool_limits: text().notNull(),
  created_ms: integer().notNull(),
  updated_ms: integer().notNull(),
})

export const usageDays = table('usage_days', {
  agent_id: text().notNull(),
  day: text().notNull(),
  model: text().notNull(),
  tenant_id: text().notNull(),
  agent_name: text().notNull(),
  runs: integer().notNull(),
  ended: integer().notNull(),
  tokens_in: integer().notNull(),
  tokens_out: integer().notNull(),
  cost_nano: integer().notNull(),
  uncertain_tokens: integer().notNull(),
  uncertain_nano: integer().notNull(),
  unpriced_calls: integer().notNull(),
})

export const reservations = table('reservations', {
  run_id: text().notNull(),
  step_id: text().notNull(),
  agent_id: text().notNull(),
  attempt: integer().notNull(),
  tokens: integer().notNull(),
  cost_nano: integer().notNull(),
  moved_tokens: integer().notNull(),
  moved_nano: integer().notNull(),
  request_id: text(),
  output_tokens: integer(),
})

export const budgetNotices = table('budget_notices', {
  agent_id: text().notNull(),
  day: text().notNull(),
  dimension: text().notNull(),
  mark: text().notNull(),
})

export const schedules = table('schedules', {
  id: text().notNull(),
  tenant_id: text().notNull(),
  name: text(),
  agent_name: text().notNull(),
  cron_expr: text().notNull(),
  timezone: text(),
  effective_zone: text().notNull(),
  input: text().notNull(),
  enabled: integer().notNull(),
  overlap: text().$type<Schedule['overlap']>().notNull(),
  catch_up: text().$type<Schedule['catchUp']>().notNull(),
  catch_up_limit: integer().notNull(),
  due_ms: integer(),
  pending_ms: integer(),
  last_fired_ms: integer(),
  last_run_id: text(),
  last_error: text(),
  revision: integer().notNull(),
  created_ms: integer().notNull(),
  updated_ms: integer().notNull(),
  input_box: bytes(),
  input_pool: text(),
  input_hash: text(),
  input_length: integer(),
})

export const scheduleFires = table('schedule_fires', {
  schedule_id: text().notNull(),
  window_ms: integer().notNull(),
  fired_ms: integer().notNull(),
  outcome: text().$type<Fire['outcome']>().notNull(),
  run_id: text(),
  reason: text(),
})

export const webhooks = table('webhooks', {
  id: text().notNull(),
  tenant_id: text().notNull(),
  url: text().notNull(),
  events: text().notNull(),
  enabled: integer().notNull(),
  sealed_secret: text().notNull(),
  created_ms: integer().notNull(),
  updated_ms: integer().notNull(),
})

export const webhookDeliveries = table('webhook_deliveries', {
  webhook_id: text().notNull(),
  event_id: text().notNull(),
  type: text().notNull(),
  at_ms: integer().notNull(),
  data: text().notNull(),
  outcome: text().$type<Delivery['outcome']>().notNull(),
  attempt: integer().notNull(),
  status: integer(),
  error: text(),
  due_ms: integer(),
  created_ms: integer().notNull(),
})

export const auditLog = table('audit_log', {
  tenant_id: text().notNull(),
  seq: integer().notNull(),
  hash: text().notNull(),
  body: text().notNull(),
})

export const auditHeads = table('audit_heads', {
  tenant_id: text().notNull(),
  seq: integer().notNull(),
  hash: text().notNull(),
})

export const auditIntents = table('audit_intents', {
  id: text().notNull(),
  at_ms: integer().notNull(),
  entry: text().notNull(),
})

export const sessions = table('sessions', {
  id: text().notNull(),
  tenant_id: text().notNull(),
  agent_name: text().notNull(),
  agent_id: text().notNull(),
  version_id: text().notNull(),
  status: text().$type<SessionStatus>().notNull(),
  title: text(),
  labels: text().notNull(),
  environment: text(),
  system_hint: text(),
  turn_id: text(),
  turn_count: integer().notNull(),
  tokens_in: integer().notNull(),
  tokens_out: integer().notNull(),
  cost_nano: integer().notNull(),
  last_event: integer().notNull(),
  created_ms: integer().notNull(),
  updated_ms: integer().notNull(),
  stopped_ms: integer(),
  stop_reason: text().$type<'stopped' | 'agent_deleted'>(),
  unpriced_calls: integer().notNull(),
})

export const turns = table('turns', {
  run_id: text().notNull(),
  session_id: text().notNull(),
  number: integer().notNull(),
  base: integer().notNull(),
  created_ms: integer().notNull(),
  status: text().$type<'open' | 'completed' | 'failed'>().notNull(),
  ended_ms: integer(),
  event_id: integer(),
  text: text(),
  tool_calls: text(),
  error: text(),
  tokens_in: integer().notNull(),
  tokens_out: integer().notNull(),
  cost_nano: integer().notNull(),
  unpriced_calls: integer().notNull(),
})

export const connectors = table('connectors', {
  tenant_id: text().notNull(),
  connector_id: text().notNull(),
  id: text().notNull(),
  display_name: text().notNull(),
  auth_method: text().$type<'oauth2' | 'token' | 'basic' | 'none'>().notNull(),
  status: text().$type<'installed' | 'expired'>().notNull(),
  config: text().notNull(),
  missing: text().notNull(),
  sealed: text().notNull(),
  base_url: text(),
  expires_ms: integer(),
  revision: integer().notNull(),
  tested_ms: integer(),
  tested_ok: integer(),
  created_ms: integer().notNull(),
  updated_ms: integer().notNull(),
  refresh_until_ms: integer(),
})

export const toolUses = table('tool_uses', {
  agent_id: text().notNull(),
  day: text().notNull(),
  tool: text().notNull(),
  n: integer().notNull(),
  run_id: text().notNull(),
  step_id: text().notNull(),
})

export const mcpPins = table('mcp_pins', {
  version_id: text().notNull(),
  server: text().notNull(),
  hash: text().notNull(),
  definitions: text().notNull(),
})

export const oauthRounds = table('oauth_rounds', {
  state_hash: text().notNull(),
  tenant_id: text().notNull(),
  connector_id: text().notNull(),
  starter: text().notNull(),
  sealed: text().notNull(),
  expires_ms: integer().notNull(),
})

export const connectorApis = table('connector_apis', {
  tenant_id: text().notNull(),
  connector_id: text().notNull(),
  api: text().notNull(),
})

export const mcpGrants = table('mcp_grants', {
  tenant_id: text().notNull(),
  resource: text().notNull(),
  id: text().notNull(),
  issuer: text().notNull(),
  scope: text(),
  status: text().$type<'installed' | 'expired'>().notNull(),
  sealed: text().notNull(),
  expires_ms: integer(),
  revision: integer().notNull(),
  refresh_until_ms: integer(),
  created_ms: integer().notNull(),
  updated_ms: integer().notNull(),
})

export const dataKeys = table('data_keys', {
  id: text().notNull(),
  sealed: text().notNull(),
  created_ms: integer().notNull(),
})

export const keyLeases = table('key_leases', {
  holder: text().notNull(),
  purpose: text().$type<'serve' | 'rotate'>().notNull(),
  until_ms: integer().notNull(),
})

export const nodePools = table('node_pools', {
  tenant_id: text().notNull(),
  name: text().notNull(),
  public_key: bytes().notNull(),
  created_ms: integer().notNull(),
})

export const nodes = table('nodes', {
  id: text().notNull(),
  tenant_id: text().notNull(),
  name: text().notNull(),
  pool: text().notNull(),
  labels: text().notNull(),
  created_ms: integer().notNull(),
  enrol_hash: text(),
  enrol_expires_ms: integer(),
  enrolled_ms: integer(),
  sign_key: bytes(),
  box_key: bytes(),
  version: text(),
  os: text(),
  arch: text(),
  vcpus: real(),
  memory_mb: integer(),
  slots: integer().notNull(),
  backends: text().notNull(),
  draining: integer().notNull(),
  signed_off: integer().notNull(),
  last_seen_ms: integer(),
  active_runs: integer().notNull(),
  lost_reported: integer().notNull(),
  store_id: text(),
  peer_url: text(),
})

export const nodeTokens = table('node_tokens', {
  hash: text().notNull(),
  node_id: text().notNull(),
  expires_ms: integer().notNull(),
})

export const nodeNonces = table('node_nonces', {
  node_id: text().notNull(),
  nonce: text().notNull(),
  at_ms: integer().notNull(),
})

export const nodeFrames = table('node_frames', {
  id: integer().notNull(),
  node_id: text().notNull(),
  frame: bytes().notNull(),
})

export const remoteRuns = table('remote_runs', {
  run_id: text().notNull(),
  tenant_id: text().notNull(),
  pool: text().notNull(),
  isolation: text().$type<Isolation>().notNull(),
  state: text().$type<'queued' | 'offered' | 'accepted' | 'ending' | 'done'>().notNull(),
  node_id: text(),
  epoch: integer().notNull(),
  created_ms: integer().notNull(),
  dispatch_by_ms: integer(),
  input_sealed: bytes(),
  input_hash: text().notNull(),
  output_hash: text(),
  event_seq: integer().notNull(),
  tip: text().notNull(),
  head_known: integer().notNull(),
  models: text().notNull(),
  ending: text(),
  error_message: text(),
  node_key: text(),
  node_signature: text(),
  pinned: text(),
  input_schedule: text(),
})

export const remoteEvents = table('remote_events', {
  run_id: text().notNull(),
  seq: integer().notNull(),
  events: text().notNull(),
})

export const tunnelRuns = table('tunnel_runs', {
  run_id: text().notNull(),
  epoch: integer().notNull(),
  node_id: text(),
  ask_budget: integer().notNull(),
})

export const tunnelTaken = table('tunnel_taken', {
  id: text().notNull(),
})

export const tunnelOutbox = table('tunnel_outbox', {
  id: integer().notNull(),
  frame: text().notNull(),
  node_id: text(),
})

export const poolCredentials = table('pool_credentials', {
  tenant_id: text().notNull(),
  pool: text().notNull(),
  ref: text().notNull(),
  box: bytes().notNull(),
  updated_ms: integer().notNull(),
  binding: text().notNull(),
})

export const nodeCredentials = table('node_credentials', {
  node_id: text().notNull(),
  ref: text().notNull(),
  at_ms: integer().notNull(),
  error: text(),
})

export const remoteSessions = table('remote_sessions', {
  session_id: text().notNull(),
  tenant_id: text().notNull(),
  pool: text().notNull(),
  node_id: text().notNull(),
})

export const tunnelChildren = table('tunnel_children', {
  child_id: text().notNull(),
  parent_id: text().notNull(),
  error_code: text(),
  error_message: text(),
})

export const tunnelNodes = table('tunnel_nodes', {
  node_id: text().notNull(),
  alive_ms: integer().notNull(),
})
