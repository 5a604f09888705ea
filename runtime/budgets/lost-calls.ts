import type { InStatement } from '@libsql/client/web'
import { nanoPlus } from '../../shared/sql/sql-values.ts'
import type { Estimate } from './limits.ts'

const UNCERTAIN_DAY =
  'insert into usage_days (agent_id, day, model, tenant_id, agent_name, uncertain_tokens, uncertain_nano)'
const ADDED = `on conflict (agent_id, day, model) do update set uncertain_tokens = uncertain_tokens + excluded.uncertain_tokens,
  uncertain_nano = ${nanoPlus('uncertain_nano', 'excluded.uncertain_nano')}`

/** A call of which it is unknown whether it was billed. */
export interface LostCall {
  runId: string
  day: string
  stepId: string
  model: string
}

/** What is held for a call becomes uncertain spend of its run and day. */
export function lost({ runId, day, stepId, model, epoch }: LostCall & { epoch?: number }): InStatement[] {
  const mine = epoch === undefined ? '' : "and r.epoch = ?5 and r.status = 'running'"
  const more = epoch === undefined ? [] : [epoch]
  const held = `reservations as h join runs as r on r.id = h.run_id where h.run_id = ?1 and h.step_id = ?2 ${mine}`
  return [
    {
      sql: `${UNCERTAIN_DAY} select r.agent_id, ?3, ?4, r.tenant_id, r.agent_name, h.tokens, h.cost_nano from ${held} ${ADDED}`,
      args: [runId, stepId, day, model, ...more],
    },
    {
      sql: `update runs set uncertain_tokens = uncertain_tokens + h.tokens, uncertain_nano = ${nanoPlus('uncertain_nano', 'h.cost_nano')}
        from reservations as h where h.run_id = ?1 and h.step_id = ?2 and runs.id = ?1
          ${epoch === undefined ? '' : "and runs.epoch = ?3 and runs.status = 'running'"}`,
      args: [runId, stepId, ...more],
    },
    {
      sql: `delete from reservations where run_id = ?1 and step_id = ?2
        ${epoch === undefined ? '' : "and exists (select 1 from runs where id = ?1 and epoch = ?3 and status = 'running')"}`,
      args: [runId, stepId, ...more],
    },
  ]
}

/** The same where nothing was held. */
export function uncertain(
  { runId, day, model }: Omit<LostCall, 'stepId'>,
  { tokens, costNano }: Estimate,
): InStatement[] {
  return [
    {
      sql: `${UNCERTAIN_DAY} select agent_id, ?2, ?3, tenant_id, agent_name, ?4, ?5 from runs where id = ?1 ${ADDED}`,
      args: [runId, day, model, tokens, costNano],
    },
    {
      sql: `update runs set uncertain_tokens = uncertain_tokens + ?2, uncertain_nano = ${nanoPlus('uncertain_nano', '?3')} where id = ?1`,
      args: [runId, tokens, costNano],
    },
  ]
}
