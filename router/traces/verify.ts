import { GENESIS, recordChainChecker, recordHash } from '../../shared/sign/record-chain.ts'
import { sha256 as portableSha256, type Sha256 } from '../../shared/sign/sha256.ts'
import type { Checkpoint, VerifyReport } from '../../shared/wire/router/checkpoint.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import { type ChainHead, hashText } from './canonical-trace.ts'
import { checkpointDigest, checkSignature, type TrustedKeys } from './checkpoint.ts'
import { traceIdSet } from './trace-ids.ts'
import { rowOf } from './trace-row.ts'

/** One record as it is stored or exported. */
export interface RecordLine {
  text: string
  /** Of a store: whose row it is, and its columns as a JSON array. */
  tenantId?: string
  columns?: string
}

export interface VerifyInput {
  /** Each tenant's records in the order of its chain, in handy lots. Tenants may be mixed. */
  records: AsyncIterable<readonly RecordLine[]>
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
  sha256?: Sha256
}

const noLots: readonly RecordLine[][] = []

interface Break {
  /** Position in the tenant's records, counted from 0. */
  index: number
  reason: string
}

interface Point {
  seq: number
  hash: string
  feedbackSeq: number
  feedbackHash: string
}

interface Tenant {
  id: string
  /** The prune checkpoint behind which the records begin. */
  start: Point | undefined
  head: ChainHead | undefined
  records: number
  broken: Break | undefined
  /** Hashes of the records that a checkpoint or an anchor names; nothing else of a record is kept. */
  wanted: Map<number, string | undefined>
  checkpoints: Checkpoint[]
  anchors: Checkpoint[]
  feedback: FeedbackChain
}

interface FeedbackChain {
  checker: ReturnType<typeof recordChainChecker>
  broken: Break | undefined
  wanted: Map<number, string | undefined>
}

/**
 * Re-derives every chain and compares it with its checkpoints, in the order of router contract §1.3. It keeps 16 to 43 bytes for each
 * trace id (ids must be unique) and the checkpoints; records pass through.
 */
export async function verifyRecords(input: VerifyInput): Promise<VerifyReport> {
  const { checkpoints = [], anchors = [], keys, tenant: only, sha256 = portableSha256 } = input
  const tenants = new Map<string, Tenant>()
  const ids = traceIdSet()
  const signed = Map.groupBy(checkpoints, one => one.tenant_id)
  const anchored = Map.groupBy(anchors, one => one.tenant_id)

  function tenantOf(id: string): Tenant {
    const known = tenants.get(id)
    if (known !== undefined) return known
    const made = newTenant(id, signed.get(id) ?? [], anchored.get(id) ?? [], sha256)
    tenants.set(id, made)
    return made
  }

  for (const id of [...signed.keys(), ...anchored.keys()]) if (only === undefined || id === only) tenantOf(id)
  // A record whose tenant cannot be read belongs to the chain it stands in.
  let last: Tenant | undefined
  for await (const lot of input.records) {
    for (const line of lot) {
      const record = parseRecord(line.text)
      const id = line.tenantId ?? record?.tenant_id ?? last?.id ?? ''
      if (only !== undefined && id !== only) continue
      last = last?.id === id ? last : tenantOf(id)
      pushRecord(last, line, record, ids, sha256)
    }
  }
  for await (const lot of input.feedback ?? noLots) {
    for (const line of lot) {
      const record = parseRecord(line.text)
      const id = line.tenantId ?? record?.tenant_id
      if (id === undefined || (only !== undefined && id !== only)) continue
      pushFeedback(tenantOf(id), record)
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

function newTenant(id: string, checkpoints: Checkpoint[], anchors: Checkpoint[], sha256: Sha256): Tenant {
  const prune = checkpoints.findLast(({ kind }) => kind === 'prune')
  const start = prune && {
    seq: prune.seq,
    hash: prune.hash,
    feedbackSeq: prune.feedback_seq,
    feedbackHash: prune.feedback_hash,
  }
  const wanted = [...checkpoints, ...anchors]
  return {
    id,
    start,
    head: start === undefined || start.seq < 0 ? undefined : { seq: start.seq, hash: start.hash },
    records: 0,
    broken: undefined,
    wanted: new Map(wanted.map(({ seq }) => [seq, undefined])),
    checkpoints,
    anchors,
    feedback: {
      checker: recordChainChecker(feedbackStart(start), sha256),
      broken: undefined,
      wanted: new Map(wanted.map(({ feedback_seq }) => [feedback_seq, undefined])),
    },
  }
}

function feedbackStart(start: Point | undefined) {
  if (start === undefined || start.feedbackSeq < 0) return undefined
  return { seq: start.feedbackSeq, prev_hash: '', hash: start.feedbackHash }
}

/** A record of any kind; undefined for what is no JSON object. Its members are checked one by one where they are used. */
function parseRecord(text: string): TraceRecord | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as TraceRecord) : undefined
  } catch {
    return undefined
  }
}

function pushRecord(
  tenant: Tenant,
  line: RecordLine,
  record: TraceRecord | undefined,
  ids: ReturnType<typeof traceIdSet>,
  sha256: Sha256,
) {
  const index = tenant.records++
  if (tenant.broken !== undefined) return
  const reason = recordFault(tenant, line, record, ids, sha256)
  if (reason !== undefined || record === undefined) {
    tenant.broken = { index, reason: reason ?? 'parse' }
    return
  }
  tenant.head = { seq: record.seq, hash: record.hash }
  if (tenant.wanted.has(record.seq)) tenant.wanted.set(record.seq, record.hash)
}

function recordFault(
  { id, head }: Tenant,
  line: RecordLine,
  record: TraceRecord | undefined,
  ids: ReturnType<typeof traceIdSet>,
  sha256: Sha256,
): string | undefined {
  if (record === undefined || typeof record.trace_id !== 'string') return 'parse'
  if (record.seq !== (head === undefined ? 0 : head.seq + 1)) return 'seq'
  if (record.prev_hash !== (head === undefined ? GENESIS : head.hash)) return 'prev_hash'
  if (!holdsOwnHash(line.text, record, sha256)) return 'hash'
  if (record.tenant_id !== id) return 'tenant'
  if (!ids.add(record.trace_id)) return 'trace_id'
  if (line.columns !== undefined && !matchesColumns(line.columns, record)) return 'columns'
  return undefined
}

/**
 * Whether the record's hash is that of its canonical bytes. The writer's own lines need no second canonical form: when the text without
 * its one `hash` member has the hash, it is the text that was sealed. Anything else (other spacing, other key order) is made
 * canonical first.
 */
function holdsOwnHash(text: string, record: TraceRecord, sha256: Sha256): boolean {
  const { hash } = record
  if (typeof hash !== 'string' || !/^[0-9a-f]{64}$/.test(hash)) return false
  const member = `"hash":"${hash}",`
  const at = text.indexOf(member)
  if (at >= 0 && hashText(text.slice(0, at) + text.slice(at + member.length), sha256) === hash) return true
  try {
    return membersIn(text) === membersOf(record) && recordHash(record, sha256) === hash
  } catch {
    return false
  }
}

/** Members as they are written: a name written twice would show one value to this reader and may show another to the next. */
function membersIn(text: string): number {
  return text.replace(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1
}

function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const own = Array.isArray(value) ? 0 : Object.keys(value).length
  return Object.values(value).reduce((sum: number, member) => sum + membersOf(member), own)
}

function matchesColumns(columns: string, record: TraceRecord): boolean {
  try {
    const expected = JSON.stringify(rowOf(record, record.seq))
    // SQL and JSON.stringify may escape a character differently; the values decide.
    return columns === expected || JSON.stringify(JSON.parse(columns)) === expected
  } catch {
    return false
  }
}

function pushFeedback({ feedback }: Tenant, record: TraceRecord | undefined) {
  if (feedback.broken !== undefined) return
  if (record === undefined) {
    feedback.broken = { index: feedback.checker.count, reason: 'parse' }
    return
  }
  feedback.broken = feedback.checker.push(record)
  if (feedback.broken === undefined && feedback.wanted.has(record.seq)) feedback.wanted.set(record.seq, record.hash)
}

interface Conclusion {
  keys: TrustedKeys | undefined
  sha256: Sha256
  withFeedback: boolean
}

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
  }
}

/** All checkpoints: signature, link, and the record that each one names. */
async function checkCheckpoints(tenant: Tenant, first: number, keys: TrustedKeys | undefined, sha256: Sha256) {
  let previous = GENESIS
  let last: number | undefined
  let broken: Break | undefined
  for (const checkpoint of withoutRepeats(tenant.checkpoints)) {
    const reason = await checkpointFault(tenant, checkpoint, { first, previous, keys })
    if (reason !== undefined) {
      const index = Math.min(Math.max(0, checkpoint.seq - first), tenant.records)
      if (broken === undefined || index < broken.index) broken = { index, reason }
      break
    }
    previous = checkpointDigest(checkpoint, sha256)
    if (checkpoint.seq >= 0) last = checkpoint.seq
  }
  return { broken, last }
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

/** A copy in a file may hold a line twice, written again after a crash. */
function withoutRepeats(checkpoints: readonly Checkpoint[]): Checkpoint[] {
  const seen = new Set<string>()
  return checkpoints.filter(({ sig }) => !seen.has(sig) && seen.add(sig))
}
