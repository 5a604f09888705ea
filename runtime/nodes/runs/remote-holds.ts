import type { InStatement } from '@libsql/client/web'
import { nanoPlus } from '../../../shared/sql/sql-values.ts'

/** Before an attempt is repeated its call is asked for anew, which says whether the one before failed or was cut off. */
const ENDS_A_CALL = new Set<string>(['step_completed', 'step_failed'])

/** The end of a call was reported: what was held for it is what it used. Of one that was cut off, the rest of its bound stays held until its run is closed. */
export function releaseHolds(
  events: readonly { runId: string; stepId: string; kind: string; cut: boolean; tokensIn: number; costNano: number }[],
): InStatement[] {
  const ended = events
    .filter(({ kind, cut }) => ENDS_A_CALL.has(kind) && !cut)
    .map(({ runId, stepId }) => [runId, stepId])
  const cut = events.filter(event => event.cut)
  return [
    ...(ended.length === 0 ? [] : [{ sql: RELEASED, args: [JSON.stringify(ended)] }]),
    ...cut.map(({ runId, stepId, tokensIn, costNano }) => ({
      sql: 'update reservations set tokens = max(0, tokens - ?), cost_nano = max(0, cost_nano - ?) where run_id = ? and step_id = ?',
      args: [tokensIn, costNano, runId, stepId],
    })),
  ]
}

const RELEASED =
  'delete from reservations where (run_id, step_id) in (select n.value ->> 0, n.value ->> 1 from json_each(?) as n)'

/** What a node reports of a run that had ended here is a part of what the run was counted with as uncertain. `endedDay` is the day of that. */
export function lateUse(
  used: { runId: string; tokensIn: number; tokensOut: number; costNano: number; unpricedCalls: number },
  endedDay: string,
): InStatement[] {
  const args = [used.runId, used.tokensIn, used.tokensOut, used.costNano]
  return [
    {
      sql: `update usage_days set uncertain_tokens = max(0, usage_days.uncertain_tokens - min(r.uncertain_tokens, ?2 + ?3)),
          uncertain_nano = max(0, usage_days.uncertain_nano - min(r.uncertain_nano, ?4))
        from runs as r where r.id = ?1 and usage_days.agent_id = r.agent_id and usage_days.day = ?5 and usage_days.model = ''`,
      args: [...args, endedDay],
    },
    {
      sql: `update runs set tokens_in = tokens_in + ?2, tokens_out = tokens_out + ?3, cost_nano = ${nanoPlus('cost_nano', '?4')},
          unpriced_calls = unpriced_calls + ?5, uncertain_tokens = max(0, uncertain_tokens - ?2 - ?3),
          uncertain_nano = max(0, uncertain_nano - ?4) where id = ?1`,
      args: [...args, used.unpricedCalls],
    },
  ]
}
