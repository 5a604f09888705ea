import { FEEDBACK, TRACE } from '../../shared/proof/members.ts'
import { sha256 as portableSha256, type Sha256 } from '../../shared/sign/sha256.ts'
import type { Checkpoint, VerifyReport } from '../../shared/wire/router/checkpoint.ts'
import type { ChainHead } from './canonical-trace.ts'
import { type CheckedStretch, type RecordLine, stretchCheck } from './check-stretch.ts'
import type { TrustedKeys } from './checkpoint.ts'
import { type ReadLine, readLine } from './record-reader.ts'
import { traceIdSet } from './trace-ids.ts'
import { joinStretch, newTenant, pushFeedback, type Tenant } from './verified-tenant.ts'
import { conclude } from './verify-checkpoints.ts'

/** Which records' hashes are asked for, tenant by tenant. */
export type Wanted = (tenantId: string) => ReadonlyMap<number, unknown>

export interface VerifyInput {
  /**
   * Each tenant's records in the order of its chain, in handy lots; tenants may be mixed. Or stretches that were checked elsewhere, each
   * tenant's in the order of its chain.
   */
  records: AsyncIterable<readonly RecordLine[]> | ((wanted: Wanted) => AsyncIterable<CheckedStretch>)
  /** Each tenant's feedback in the order of its chain; without it feedback is not checked. */
  feedback?: AsyncIterable<readonly RecordLine[]>
  /** In the order in which they were made. */
  checkpoints?: readonly Checkpoint[]
  /** Copies of checkpoints that were kept elsewhere. */
  anchors?: readonly Checkpoint[]
  /** Without keys, signatures are not checked. */
  keys?: TrustedKeys
  /** Report this tenant only. */
  tenant?: string
  /** The records begin behind this one of the tenant's chain, which is taken as it is: the older ones are not checked. */
  after?: ChainHead
  sha256?: Sha256
}

const noLots: readonly RecordLine[][] = []

/**
 * Re-derives every chain and compares it with its checkpoints, in the order of docs/spec/proof.md. It keeps 24 to 40 bytes for each
 * trace id (ids must be unique) and the checkpoints; records pass through.
 */
export async function verifyRecords(input: VerifyInput): Promise<VerifyReport> {
  const { checkpoints = [], anchors = [], keys, tenant: only, after, sha256 = portableSha256 } = input
  const tenants = new Map<string, Tenant>()
  const ids = traceIdSet()
  const signed = Map.groupBy(checkpoints, one => one.tenant_id)
  const anchored = Map.groupBy(anchors, one => one.tenant_id)

  function tenantOf(id: string): Tenant {
    const found = tenants.get(id)
    if (found !== undefined) return found
    const known = { checkpoints: signed.get(id) ?? [], anchors: anchored.get(id) ?? [] }
    const made = newTenant(id, { ...known, after: id === only ? after : undefined }, sha256)
    tenants.set(id, made)
    return made
  }
  const wanted: Wanted = id => tenantOf(id).wanted

  for (const id of [...signed.keys(), ...anchored.keys()]) if (only === undefined || id === only) tenantOf(id)
  const { records } = input
  const stretches = typeof records === 'function' ? records(wanted) : checkedLots(records, { wanted, only, sha256 })
  for await (const stretch of stretches) {
    if (only === undefined || stretch.tenantId === only) joinStretch(tenantOf(stretch.tenantId), stretch, ids)
  }
  let last = ''
  for await (const lot of input.feedback ?? noLots) {
    for (const line of lot) {
      const read = readLine(line.text, FEEDBACK)
      const id = line.tenantId ?? tenantOfLine(read, last)
      if (only !== undefined && id !== only) continue
      last = id
      pushFeedback(tenantOf(id), read, line.columns)
    }
  }
  const reports = []
  for (const tenant of [...tenants.values()].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    reports.push(await conclude(tenant, { keys, sha256, withFeedback: input.feedback !== undefined }))
  }
  return {
    valid: reports.every(({ broken_at }) => broken_at === null),
    records: reports.reduce((sum, { records }) => sum + records, 0),
    tenants: reports,
  }
}

/** A record whose tenant cannot be read belongs to the chain it stands in. */
function tenantOfLine({ record }: ReadLine, last: string): string {
  return typeof record?.tenant_id === 'string' ? record.tenant_id : last
}

interface LotOptions {
  wanted: Wanted
  only: string | undefined
  sha256: Sha256
}

/** Each lot as one stretch for each of its tenants. */
export async function* checkedLots(
  lots: AsyncIterable<readonly RecordLine[]>,
  { wanted, only, sha256 }: LotOptions,
): AsyncGenerator<CheckedStretch> {
  let last = ''
  for await (const lot of lots) {
    const checks = new Map<string, ReturnType<typeof stretchCheck>>()
    for (const line of lot) {
      const one = readLine(line.text, TRACE)
      const id = line.tenantId ?? tenantOfLine(one, last)
      if (only !== undefined && id !== only) continue
      last = id
      let check = checks.get(id)
      if (check === undefined) {
        check = stretchCheck(id, wanted(id), sha256)
        checks.set(id, check)
      }
      check.push(line, one)
    }
    for (const { stretch } of checks.values()) yield stretch
  }
}
