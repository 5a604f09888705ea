import { FEEDBACK, TRACE } from '../../shared/proof/members.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { GENESIS } from '../../shared/sign/record-chain.ts'
import { sha256 as portableSha256, type Sha256 } from '../../shared/sign/sha256.ts'
import type { Checkpoint, VerifyReport } from '../../shared/wire/router/checkpoint.ts'
import type { ChainHead } from './canonical-trace.ts'
import { type Break, type CheckedStretch, type RecordLine, stretchCheck } from './check-stretch.ts'
import { checkpointDigest, checkSignature, type TrustedKeys } from './checkpoint.ts'
import { type ReadLine, readLine } from './record-reader.ts'
import { traceIdSet } from './trace-ids.ts'
import { joinStretch, newTenant, pushFeedback, type Tenant } from './verified-tenant.ts'

/** Which records' hashes are asked for, tenant by tenant. */
export type WantedHashes = (tenantId: string) => ReadonlyMap<number, unknown>

export interface VerifyInput {
  /**
   * Each tenant's records in the order of its chain, in handy lots; tenants may be mixed. Or stretches that were checked elsewhere, each
   * tenant's in the order of its chain.
   */
  records: AsyncIterable<readonly RecordLine[]> | ((wanted: WantedHashes) => AsyncIterable<CheckedStretch>)
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
  const wanted: WantedHashes = id => tenantOf(id).wanted

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
  wanted: WantedHashes
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

interface Conclusion {
  keys: TrustedKeys | undefined
  sha256: Sha256
  withFeedback: boolean
}

/** The verdict on one tenant, once all of its records have been joined. */
async function conclude(
  tenant: Tenant,
  { keys, sha256, withFeedback }: Conclusion,
): Promise<VerifyReport['tenants'][number]> {
  const first = (tenant.start?.seq ?? -1) + 1
  const checked = await checkCheckpoints(tenant, first, keys, sha256)
  const anchored = await checkAnchors(tenant, first, keys)
  const { checker, broken: brokenFeedback } = tenant.feedback
  const feedback = brokenFeedback && { index: brokenFeedback.index, reason: `feedback_${brokenFeedback.reason}` }
  const lost = withFeedback && feedback === undefined ? lostFeedback(tenant, checker.head?.seq ?? -1) : undefined
  // In the order of the contract; a later check wins only where it breaks earlier.
  let broken: Break | undefined
  for (const found of [tenant.broken, checked.broken, anchored]) {
    if (found !== undefined && (broken === undefined || found.index < broken.index)) broken = found
  }
  broken ??= feedback ?? lost
  const intact = tenant.broken === undefined ? first + tenant.records : first + tenant.broken.index
  return {
    tenant_id: tenant.id,
    records: tenant.records,
    broken_at: broken?.index ?? null,
    reason: broken?.reason ?? null,
    last_checkpoint: checked.last ?? null,
    unanchored_tail: Math.max(0, intact - 1 - (checked.last ?? first - 1)),
    unanchored_feedback: Math.max(0, (checker.head?.seq ?? -1) - checked.lastFeedback),
  }
}

/** All checkpoints: signature, link, and the record that each one names. */
async function checkCheckpoints(tenant: Tenant, first: number, keys: TrustedKeys | undefined, sha256: Sha256) {
  let previous = GENESIS
  let last: number | undefined
  let lastFeedback = tenant.start?.feedbackSeq ?? -1
  let broken: Break | undefined
  for (const checkpoint of withoutRepeats(tenant.checkpoints)) {
    const reason = await checkpointFault(tenant, checkpoint, { first, previous, keys })
    if (reason !== undefined) {
      const index = Math.min(Math.max(0, checkpoint.seq - first), tenant.records)
      if (broken === undefined || index < broken.index) broken = { index, reason }
      break
    }
    previous = checkpointDigest(checkpoint, sha256)
    // A pruning is signed behind the head that it leaves as it is.
    if (checkpoint.seq >= 0) last = Math.max(last ?? -1, checkpoint.seq)
    lastFeedback = Math.max(lastFeedback, checkpoint.feedback_seq)
  }
  return { broken, last, lastFeedback }
}

interface CheckpointContext {
  first: number
  previous: string
  keys: TrustedKeys | undefined
}

async function checkpointFault(
  tenant: Tenant,
  checkpoint: Checkpoint,
  { first, previous, keys }: CheckpointContext,
): Promise<string | undefined> {
  if (keys !== undefined && !(await checkSignature(checkpoint, keys))) return 'checkpoint_signature'
  if (checkpoint.prev_checkpoint !== previous) return 'checkpoint_link'
  return headFault(tenant, checkpoint, first)
}

/** A checkpoint before the first record left has nothing to be compared with, except the one that the pruning made. */
function headFault(tenant: Tenant, { seq, hash }: Checkpoint, first: number): string | undefined {
  if (seq < first) return seq === tenant.start?.seq && hash !== tenant.start.hash ? 'checkpoint_head' : undefined
  const found = tenant.wanted.get(seq)
  if (found !== undefined) return found === hash ? undefined : 'checkpoint_head'
  // Not reached because the chain broke before it: that break stands.
  return tenant.broken === undefined ? 'tail_cut' : undefined
}

/** Tail cut: at the end of what is left. A head that differs: at that record. */
async function checkAnchors(tenant: Tenant, first: number, keys: TrustedKeys | undefined): Promise<Break | undefined> {
  let broken: Break | undefined
  for (const anchor of tenant.anchors) {
    const reason =
      keys !== undefined && !(await checkSignature(anchor, keys))
        ? 'anchor_signature'
        : headFault(tenant, anchor, first)
    if (reason === undefined) continue
    const index = Math.min(Math.max(0, anchor.seq - first), tenant.records)
    if (broken === undefined || index < broken.index) broken = { index, reason: reason.replace('checkpoint', 'anchor') }
  }
  return broken
}

function lostFeedback(tenant: Tenant, last: number): Break | undefined {
  const from = (tenant.start?.feedbackSeq ?? -1) + 1
  for (const { feedback_seq, feedback_hash } of [...tenant.checkpoints, ...tenant.anchors]) {
    if (feedback_seq < from) continue
    const found = tenant.feedback.wanted.get(feedback_seq)
    if (found === undefined) return { index: last + 1 - from, reason: 'feedback_tail_cut' }
    if (found !== feedback_hash) return { index: feedback_seq - from, reason: 'feedback_head' }
  }
  return undefined
}

/** A copy in a file may hold a line twice, written again after a crash; one that differs in anything is another checkpoint. */
function withoutRepeats(checkpoints: readonly Checkpoint[]): Checkpoint[] {
  const seen = new Set<string>()
  return checkpoints.filter(one => {
    const text = canonicalize(one)
    return !seen.has(text) && seen.add(text)
  })
}
