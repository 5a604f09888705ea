import type { Migration } from '../../shared/sql/migrate.ts'

/**
 * What lists of runs are read by: without turns of sessions among them, however many of those came since; by what started them; by
 * agent and status together.
 */
export const dashboardStep: Migration = {
  id: 14,
  name: 'dashboard',
  sql: `create index runs_apart on runs (tenant_id, created_ms, id) where trigger_kind <> 'session';
create index runs_trigger on runs (tenant_id, trigger_kind, created_ms, id);
create index runs_agent_status on runs (tenant_id, agent_name, status, created_ms, id);`,
}
