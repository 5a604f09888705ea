import { readJson } from '../../shared/json/read-json.ts'
import { GENESIS } from '../../shared/sign/record-chain.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
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

interface ChainRow {
  tenant_id: string
  head: string | null
  digest: string | null
  signed: number | null
  reported: number | null
  pruned: string | null
}

/** Every tenant's chain as the store has it. A record that cannot be read breaks its own chain, and keeps no other from going on. */
export async function loadChains(db: Db): Promise<Map<string, ChainState>> {
  const answer = await db.execute(`with tenants as materialized (${tenantsSql})
    select tenant_id,
      (select json_array(seq, case when json_valid(body) then body ->> 'hash' else '' end) from traces t where t.tenant_id = tenants.tenant_id order by seq desc limit 1) as head,
      (select digest from checkpoints c where c.tenant_id = tenants.tenant_id order by ix desc limit 1) as digest,
      (select seq from checkpoints c where c.tenant_id = tenants.tenant_id and kind = 'head' order by ix desc limit 1) as signed,
      (select case when json_valid(body) then body ->> 'feedback_seq' end from checkpoints c where c.tenant_id = tenants.tenant_id order by ix desc limit 1) as reported,
      (select json_array(seq, case when json_valid(body) then body ->> 'hash' else '' end) from checkpoints c where c.tenant_id = tenants.tenant_id and kind = 'prune' order by ix desc limit 1) as pruned
    from tenants`)
  const chains = new Map<string, ChainState>()
  for (const row of rowsOf<ChainRow>(answer)) {
    const [headSeq, headHash] = pair(row.head) ?? pair(row.pruned) ?? []
    chains.set(row.tenant_id, {
      head:
        headSeq === undefined || headHash === undefined || headSeq < 0 ? undefined : { seq: headSeq, hash: headHash },
      digest: row.digest ?? GENESIS,
      checkpointed: row.signed ?? -1,
      reported: row.reported ?? -1,
    })
  }
  return chains
}

/** How far each tenant's feedback goes. */
export async function lastReports(db: Db): Promise<Map<string, number>> {
  const answer = await db.execute(`with tenants as materialized (${tenantsSql})
    select tenant_id, (select max(seq) from feedback f where f.tenant_id = tenants.tenant_id) as last from tenants`)
  const rows = rowsOf<{ tenant_id: string; last: number | null }>(answer)
  return new Map(rows.map(({ tenant_id, last }) => [tenant_id, last ?? -1]))
}

function pair(value: string | null): [number, string] | undefined {
  return value === null ? undefined : (readJson(value) as [number, string])
}
