import { readJson } from '../../shared/json/read-json.ts'
import { GENESIS } from '../../shared/sign/record-chain.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { ChainHead } from './canonical-trace.ts'

/** Where one tenant's chain and its checkpoints stand. */
export interface ChainState {
  head: ChainHead | undefined
  /** `prev_checkpoint` of the next checkpoint. */
  digest: string
  /** seq of the last checkpoint's record; -1 before the first. */
  checkpointed: number
  /** feedback_seq of the last checkpoint; -1 before the first. */
  reported: number
}

export const emptyChain = (): ChainState => ({ head: undefined, digest: GENESIS, checkpointed: -1, reported: -1 })

// "distinct" would read the whole index; asking for the next larger name reads one entry for each tenant.
export const tenantsSql = `with recursive known(tenant_id) as (
    select min(tenant_id) from traces
    union all select (select min(tenant_id) from traces where tenant_id > known.tenant_id) from known where known.tenant_id is not null)
  select tenant_id from known where tenant_id is not null
  union select tenant_id from (with recursive signed(tenant_id) as (
    select min(tenant_id) from checkpoints
    union all select (select min(tenant_id) from checkpoints where tenant_id > signed.tenant_id) from signed where signed.tenant_id is not null)
  select tenant_id from signed where tenant_id is not null)
  order by tenant_id`

/** Every tenant's chain as the store has it. */
export async function loadChains(db: Db): Promise<Map<string, ChainState>> {
  const { rows } = await db.execute(`with tenants as materialized (${tenantsSql})
    select tenant_id,
      (select json_array(seq, body ->> 'hash') from traces t where t.tenant_id = tenants.tenant_id order by seq desc limit 1) as head,
      (select digest from checkpoints c where c.tenant_id = tenants.tenant_id order by ix desc limit 1) as digest,
      (select seq from checkpoints c where c.tenant_id = tenants.tenant_id and kind = 'head' order by ix desc limit 1) as signed,
      (select body ->> 'feedback_seq' from checkpoints c where c.tenant_id = tenants.tenant_id order by ix desc limit 1) as reported,
      (select json_array(seq, body ->> 'hash') from checkpoints c where c.tenant_id = tenants.tenant_id and kind = 'prune' order by ix desc limit 1) as pruned
    from tenants`)
  const chains = new Map<string, ChainState>()
  for (const row of rows) {
    const [headSeq, headHash] = pair(row.head) ?? pair(row.pruned) ?? []
    chains.set(String(row.tenant_id), {
      head:
        headSeq === undefined || headHash === undefined || headSeq < 0 ? undefined : { seq: headSeq, hash: headHash },
      digest: row.digest === null ? GENESIS : String(row.digest),
      checkpointed: row.signed === null ? -1 : Number(row.signed),
      reported: row.reported === null ? -1 : Number(row.reported),
    })
  }
  return chains
}

/** How far each tenant's feedback goes. */
export async function lastReports(db: Db): Promise<Map<string, number>> {
  const { rows } = await db.execute(`with tenants as materialized (${tenantsSql})
    select tenant_id, (select max(seq) from feedback f where f.tenant_id = tenants.tenant_id) as last from tenants`)
  return new Map(rows.map(row => [String(row.tenant_id), row.last === null ? -1 : Number(row.last)]))
}

function pair(value: unknown): [number, string] | undefined {
  return typeof value === 'string' ? (readJson(value) as [number, string]) : undefined
}
