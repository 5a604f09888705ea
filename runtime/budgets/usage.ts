import type { InValue } from '@libsql/client/web'
import { toUsd } from '../../shared/money/money.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { nanoSum, storableText } from '../../shared/sql/sql-values.ts'
import type { UsageItem } from '../../shared/wire/runtime/usage.ts'

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

type Counted =
  | 'runs'
  | 'tokens_in'
  | 'tokens_out'
  | 'cost_nano'
  | 'uncertain_tokens'
  | 'uncertain_nano'
  | 'unpriced_calls'
type UsageRow = { name: string } & Record<Counted, number>

/** What was used, from counters that stay when runs are deleted: the work is by days and agents, not by runs. */
export async function usage(db: Db, { tenantId, from, to, agentName, groupBy }: UsageWanted): Promise<UsageItem[]> {
  const column = GROUPS[groupBy]
  // A run has its model when it has ended; before that it is counted for its day and agent alone.
  const runs = groupBy === 'model' ? 'sum(ended)' : 'sum(runs)'
  const args: InValue[] = [tenantId, from, to, ...(agentName === undefined ? [] : [storableText(agentName)])]
  const found = await db.execute({
    sql: `select ${column} as name, ${runs} as runs, sum(tokens_in) as tokens_in, sum(tokens_out) as tokens_out, ${nanoSum('cost_nano')} as cost_nano,
      sum(uncertain_tokens) as uncertain_tokens, ${nanoSum('uncertain_nano')} as uncertain_nano, sum(unpriced_calls) as unpriced_calls from usage_days
      where tenant_id = ? and day between ? and ? ${agentName === undefined ? '' : 'and agent_name = ?'}
      ${groupBy === 'model' ? "and model <> ''" : ''} group by ${column} order by ${column}`,
    args,
  })
  return rowsOf<UsageRow>(found).map(row => ({
    [MEMBERS[groupBy]]: row.name,
    runs: row.runs,
    tokensIn: row.tokens_in,
    tokensOut: row.tokens_out,
    costUsd: toUsd(row.cost_nano),
    uncertainTokens: row.uncertain_tokens,
    uncertainCostUsd: toUsd(row.uncertain_nano),
    unpricedCalls: row.unpriced_calls,
  }))
}
