/** A table whose rows belong to tenants, and how each row tells whose it is. */
export interface MovedTable {
  table: string
  /** The columns of its primary key. */
  key: readonly string[]
  /** The column with the tenant, the path to it in a JSON text, or the row above it that has it. */
  tenant: { column: string } | { json: string } | { above: string; column: string }
  /** In which order its rows are read, where an index of the tenant has one; else that of the key. */
  order?: readonly string[]
  /** What these columns are in the copy until the directory names it: nothing there is due, or missed, before. */
  resting?: Readonly<Record<string, null | number>>
  /** Copied when nothing changes any more: the new place would go on with it. */
  last?: true
  /** Rows go by themselves when they are over, at either place. */
  expires?: true
  /** Those that are read, where it is not the whole row. */
  columns?: readonly string[]
}

const own = (table: string, ...key: string[]): MovedTable => ({ table, key, tenant: { column: 'tenant_id' } })
const listed = (table: string): MovedTable => ({ ...own(table, 'id'), order: ['created_ms', 'id'] })
const below = (above: string, column: string, table: string, ...key: string[]): MovedTable => ({
  table,
  key,
  tenant: { above, column },
})

/** What moves with a tenant. What a row refers to comes before it. */
export const MOVED: readonly MovedTable[] = [
  { table: 'tenants', key: ['id'], tenant: { column: 'id' } },
  listed('api_keys'),
  listed('agents'),
  own('agent_versions', 'id'),
  { ...own('idempotency', 'tenant_id', 'route', 'key'), expires: true },
  listed('users'),
  { ...below('users', 'user_id', 'logins', 'hash'), expires: true },
  below('users', 'user_id', 'user_links', 'user_id'),
  own('providers', 'tenant_id', 'provider'),
  own('provider_tries', 'tenant_id', 'provider'),
  own('model_settings', 'tenant_id'),
  own('secrets', 'tenant_id', 'name'),
  own('budgets', 'agent_id'),
  own('usage_days', 'agent_id', 'day', 'model'),
  below('agents', 'agent_id', 'budget_notices', 'agent_id', 'day', 'dimension'),
  below('agents', 'agent_id', 'reservations', 'run_id', 'step_id'),
  below('agents', 'agent_id', 'tool_uses', 'agent_id', 'day', 'tool', 'n'),
  { ...listed('schedules'), resting: { due_ms: null, pending_ms: null } },
  { ...below('schedules', 'schedule_id', 'schedule_fires', 'schedule_id', 'window_ms'), expires: true },
  listed('webhooks'),
  {
    ...below('webhooks', 'webhook_id', 'webhook_deliveries', 'webhook_id', 'event_id'),
    resting: { due_ms: null },
    expires: true,
  },
  own('connectors', 'tenant_id', 'connector_id'),
  own('connector_apis', 'tenant_id', 'connector_id'),
  { ...own('oauth_rounds', 'state_hash'), expires: true },
  own('mcp_grants', 'tenant_id', 'resource'),
  listed('sessions'),
  { ...listed('runs'), resting: { due_ms: null, owner: null } },
  below('agent_versions', 'version_id', 'tool_lists', 'version_id', 'digest'),
  below('agent_versions', 'version_id', 'mcp_pins', 'version_id', 'server'),
  below('runs', 'run_id', 'run_data', 'run_id'),
  below('runs', 'run_id', 'events', 'run_id', 'seq'),
  below('runs', 'run_id', 'blobs', 'run_id', 'sha256'),
  below('runs', 'run_id', 'signals', 'id'),
  listed('approvals'),
  below('sessions', 'session_id', 'turns', 'run_id'),
  own('receipts', 'run_id'),
  own('audit_log', 'tenant_id', 'seq'),
  own('audit_heads', 'tenant_id'),
  { table: 'audit_intents', key: ['id'], tenant: { json: 'entry' }, last: true },
  own('node_pools', 'tenant_id', 'name'),
  { ...listed('nodes'), resting: { signed_off: 1 } },
  { ...below('nodes', 'node_id', 'node_tokens', 'hash'), expires: true },
  { ...below('nodes', 'node_id', 'node_nonces', 'node_id', 'nonce'), expires: true },
  below('nodes', 'node_id', 'node_credentials', 'node_id', 'ref'),
  own('pool_credentials', 'tenant_id', 'pool', 'ref'),
  { ...own('remote_runs', 'run_id'), resting: { dispatch_by_ms: null } },
  below('runs', 'run_id', 'remote_events', 'run_id', 'seq'),
  own('remote_sessions', 'session_id'),
]

/** Frames that wait for nodes: their ids are of the database, so they are copied at the end, in their order. */
export const FRAMES = 'node_frames'

/** The tables directly below another one. */
export const childrenOf = (table: string): MovedTable[] =>
  MOVED.filter(({ tenant }) => 'above' in tenant && tenant.above === table)

/** An expression for the tenant of a row that is called `row`. */
export function tenantOf({ tenant }: MovedTable, row: string): string {
  if ('json' in tenant) return `(${row}.${tenant.json} ->> '$.tenantId')`
  if ('above' in tenant) return `(select tenant_id from ${tenant.above} where id = ${row}.${tenant.column})`
  return `${row}.${tenant.column}`
}
