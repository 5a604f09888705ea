import type { VerifyReport } from '../../shared/wire/router/checkpoint.ts'

export interface ShardReport {
  /** Undefined where there is one store. */
  shard: string | undefined
  verdict: VerifyReport
  notes: readonly string[]
}

/** What was found in each shard as one report. A tenant with records in two of them has no one chain, and that is no valid log. */
export function joinReports(found: readonly ShardReport[]): { verdict: VerifyReport; notes: string[] } {
  const notes = found.flatMap(one => one.notes)
  const [only, ...others] = found
  if (only && others.length === 0) return { verdict: only.verdict, notes }
  const places = Map.groupBy(
    found.flatMap(({ shard = '', verdict }) => verdict.tenants.map(({ tenant_id }) => ({ tenant_id, shard }))),
    ({ tenant_id }) => tenant_id,
  )
  const split = [...places].filter(([, those]) => those.length > 1)
  for (const [tenant, those] of split)
    notes.push(`${tenant} has a chain in each of the shards ${those.map(({ shard }) => shard).join(', ')}`)
  const reason = found.find(({ verdict }) => verdict.reason !== undefined)?.verdict.reason
  return {
    verdict: {
      valid: split.length === 0 && found.every(({ verdict }) => verdict.valid),
      ...((reason ?? split[0]) !== undefined && { reason: reason ?? 'two_shards' }),
      records: found.reduce((sum, { verdict }) => sum + verdict.records, 0),
      tenants: found.flatMap(({ verdict }) => verdict.tenants).toSorted((a, b) => (a.tenant_id < b.tenant_id ? -1 : 1)),
    },
    notes,
  }
}
