import type { Migration } from '../../shared/sql/migrate.ts'

/** What is open, by whose it is: how the next run of each agent is found without a look at what waits before it. */
export const fairShareStep: Migration = {
  id: 27,
  name: 'turns of tenants and agents',
  sql: 'create index runs_turn on runs (tenant_id, agent_id, due_ms) where due_ms is not null;',
}
