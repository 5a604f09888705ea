import type { InStatement } from '@libsql/client/web'

/** Before an attempt is repeated its call is asked for anew, which says whether the one before failed or was cut off. */
const ENDS_A_CALL = new Set<string>(['step_completed', 'step_failed'])

/** The end of a call was reported: what was held for it is what it used. */
export function releaseHolds(events: readonly { runId: string; stepId: string; kind: string }[]): InStatement[] {
  const ended = events.filter(({ kind }) => ENDS_A_CALL.has(kind)).map(({ runId, stepId }) => [runId, stepId])
  if (ended.length === 0) return []
  const sql = `delete from reservations where (run_id, step_id) in (select n.value ->> 0, n.value ->> 1 from json_each(?) as n)`
  return [{ sql, args: [JSON.stringify(ended)] }]
}
