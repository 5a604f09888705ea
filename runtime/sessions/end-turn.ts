import type { InStatement } from '@libsql/client/web'
import { nanoPlus } from '../../shared/sql/sql-values.ts'

export interface EndOfTurn {
  runId: string
  epoch: number
  sessionId: string
  /** JSON texts, as they are kept. */
  text: string | null
  toolCalls: string | null
  error: string | null
  spent: { tokensIn: number; tokensOut: number; costNano: number }
  atMs: number
  /** Place of the end among the session's events. */
  eventId: number
}

const OWNED = "exists (select 1 from runs where id = ?1 and epoch = ?2 and status = 'running')"

/**
 * For the commit that ends a turn's run. The session is active again only if it was still processing this very turn: a late
 * turn changes nothing of a stopped one but its counters, and its end emits no event.
 */
export function endTurn(turn: EndOfTurn): InStatement[] {
  const { runId, epoch, sessionId, text, toolCalls, error, spent, atMs, eventId } = turn
  const { tokensIn, tokensOut, costNano } = spent
  return [
    {
      sql: `update turns set status = case when ?4 is null then 'failed' else 'completed' end, text = ?4, tool_calls = ?5,
          error = ?6, tokens_in = ?7, tokens_out = ?8, cost_nano = ?9, ended_ms = ?10,
          event_id = case when exists (select 1 from sessions where id = ?3 and status = 'processing' and turn_id = ?1)
            then ?11 end
        where run_id = ?1 and ${OWNED}`,
      args: [runId, epoch, sessionId, text, toolCalls, error, tokensIn, tokensOut, costNano, atMs, eventId],
    },
    {
      sql: `update sessions set
          last_event = case status when 'processing' then max(last_event, ?4) else last_event end,
          status = case status when 'processing' then 'active' else status end,
          turn_id = null, updated_ms = ?5, tokens_in = tokens_in + ?6, tokens_out = tokens_out + ?7, cost_nano = ${nanoPlus('cost_nano', '?8')}
        where id = ?3 and turn_id = ?1 and ${OWNED}`,
      args: [runId, epoch, sessionId, eventId, atMs, tokensIn, tokensOut, costNano],
    },
  ]
}
