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

/** Calls whose end was never told, as of a node that is lost, may have been billed. */
export function unreportedHolds(runId: string, day: string): InStatement[] {
  const held = `reservations where run_id = ?1 and step_id <> ''`
  return [
    {
      sql: `insert into usage_days (agent_id, day, model, tenant_id, agent_name, uncertain_tokens, uncertain_nano)
        select agent_id, ?2, '', tenant_id, agent_name, (select sum(tokens) from ${held}), (select sum(cost_nano) from ${held})
        from runs where id = ?1 and status in ('queued', 'running', 'waiting') and exists (select 1 from ${held})
        on conflict (agent_id, day, model) do update set uncertain_tokens = uncertain_tokens + excluded.uncertain_tokens,
          uncertain_nano = uncertain_nano + excluded.uncertain_nano`,
      args: [runId, day],
    },
    {
      sql: `update runs set uncertain_tokens = uncertain_tokens + (select sum(tokens) from ${held}),
          uncertain_nano = uncertain_nano + (select sum(cost_nano) from ${held})
        where id = ?1 and status in ('queued', 'running', 'waiting') and exists (select 1 from ${held})`,
      args: [runId],
    },
  ]
}
