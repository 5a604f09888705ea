import type { InStatement } from '@libsql/client/web'

/**
 * For the transaction that deletes an agent: its open runs lose their owner and are due, and the next process that claims them ends
 * them. An owner that is in the middle of one finds itself superseded at its next commit.
 */
export function endRuns({ id }: { id: string }, nowMs: number): InStatement[] {
  return [
    {
      sql: `update runs set ending = 'agent_deleted', epoch = epoch + 1, owner = null, due_ms = 0, updated_ms = ?
        where agent_id = ? and status in ('queued', 'running', 'waiting')
          and not exists (select 1 from remote_runs where run_id = runs.id)`,
      args: [nowMs, id],
    },
  ]
}
