import type { InStatement } from '@libsql/client/web'

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
