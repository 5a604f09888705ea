import type { InStatement } from '@libsql/client/web'

/** Open runs of the agent ?1. The index has them by name, which a deleted agent may have had before. */
export const OPEN_OF_AGENT = `(tenant_id, agent_name) = (select tenant_id, name from agents where id = ?1) and agent_id = ?1
  and status in ('queued', 'running', 'waiting')`

/**
 * For the transaction that deletes an agent: its open runs lose their owner and are due, and the next process that claims them ends
 * them. An owner that is in the middle of one finds itself superseded at its next commit.
 */
export function endRuns({ id }: { id: string }, nowMs: number): InStatement[] {
  return [
    {
      sql: `update runs set ending = 'agent_deleted', epoch = epoch + 1, owner = null, due_ms = 0, updated_ms = ?2
        where ${OPEN_OF_AGENT} and not exists (select 1 from remote_runs where run_id = runs.id)`,
      args: [id, nowMs],
    },
  ]
}
