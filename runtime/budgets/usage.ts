import type { InValue } from '@libsql/client/web'
import { toUsd } from '../../shared/money/money.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { UsageItem } from '../../shared/wire/runtime/usage.ts'
import { storableText } from '../schema/storable-text.ts'

export interface UsageWanted {
  tenantId: string
  /** Days, both counted in. */
  from: string
  to: string
  agentName?: string | undefined
  groupBy: 'day' | 'agent' | 'model'
}

const GROUPS = { day: 'day', agent: 'agent_name', model: 'model' } as const
const MEMBERS = { day: 'day', agent: 'agentName', model: 'model' } as const

/** What was used, from counters that stay when runs are deleted: the work is by days and agents, not by runs. */
export async function usage(db: Db, { tenantId, from, to, agentName, groupBy }: UsageWanted): Promise<UsageItem[]> {
  const column = GROUPS[groupBy]
  // A run has its model when it has ended; before that it is counted for its day and agent alone.
  const runs = groupBy === 'model' ? 'sum(ended)' : 'sum(runs)'
  const args: InValue[] = [tenantId, from, to, ...(agentName === undefined ? [] : [storableText(agentName)])]
  const { rows } = await db.execute({
    sql: `select ${column}, ${runs}, sum(tokens_in), sum(tokens_out), sum(cost_nano),
      sum(uncertain_tokens), sum(uncertain_nano), sum(unpriced_calls) from usage_days
      where tenant_id = ? and day between ? and ? ${agentName === undefined ? '' : 'and agent_name = ?'}
      ${groupBy === 'model' ? "and model <> ''" : ''} group by ${column} order by ${column}`,
    args,
  })
  return rows.map(row => ({
    [MEMBERS[groupBy]]: String(row[0]),
    runs: Number(row[1]),
    tokensIn: Number(row[2]),
    tokensOut: Number(row[3]),
    costUsd: toUsd(Number(row[4])),
    uncertainTokens: Number(row[5]),
    uncertainCostUsd: toUsd(Number(row[6])),
    unpricedCalls: Number(row[7]),
  }))
}
