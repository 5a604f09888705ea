import { GENESIS, recordChainChecker } from '../../shared/sign/record-chain.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { Checkpoint } from '../../shared/wire/router/checkpoint.ts'
import type { ChainHead } from './canonical-trace.ts'
import type { Break, CheckedStretch } from './check-stretch.ts'
import type { ReadLine } from './record-reader.ts'
import { matchesFeedback } from './stored-records.ts'
import type { traceIdSet } from './trace-ids.ts'

interface Point {
  seq: number
  hash: string
  feedbackSeq: number
  feedbackHash: string
}

/** What a verification knows about one tenant so far. */
export interface Tenant {
  id: string
  /** The record behind which those that are looked at begin: where pruning cut the chain, or a later one. */
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

export function newTenant(
  id: string,
  { checkpoints, anchors, after }: Pick<Tenant, 'checkpoints' | 'anchors'> & { after: ChainHead | undefined },
  sha256: Sha256,
): Tenant {
  const prune = checkpoints.findLast(({ kind }) => kind === 'prune')
  const start = startOf(prune, after)
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

/** Where the records that are looked at begin: behind what pruning cut, or later. Feedback is checked from the cut in either case. */
function startOf(prune: Checkpoint | undefined, after: ChainHead | undefined): Point | undefined {
  const cut = { feedbackSeq: prune?.feedback_seq ?? -1, feedbackHash: prune?.feedback_hash ?? GENESIS }
  if (after !== undefined && after.seq > (prune?.seq ?? -1)) return { seq: after.seq, hash: after.hash, ...cut }
  return prune && { seq: prune.seq, hash: prune.hash, ...cut }
}

function feedbackStart(start: Point | undefined) {
  if (start === undefined || start.feedbackSeq < 0) return undefined
  return { seq: start.feedbackSeq, prev_hash: '', hash: start.feedbackHash }
}

/** Puts a stretch behind the ones that were joined before it; ids must be unique over all of them. */
export function joinStretch(tenant: Tenant, stretch: CheckedStretch, ids: ReturnType<typeof traceIdSet>): void {
  const base = tenant.records
  tenant.records += stretch.records
  if (tenant.broken !== undefined || stretch.records === 0) return
  const broken = placeFault(tenant, stretch) ?? repeatedId(stretch, ids) ?? stretch.broken
  const sound = broken?.index ?? stretch.records
  const firstSeq = (tenant.head?.seq ?? -1) + 1
  for (const [seq, hash] of stretch.hashes) if (seq - firstSeq < sound) tenant.wanted.set(seq, hash)
  if (broken !== undefined) tenant.broken = { ...broken, index: base + broken.index }
  else tenant.head = stretch.head
}

/** Whether the stretch begins where the chain ended. A first record that could not be read is a break of its own. */
function placeFault({ head }: Tenant, { first }: CheckedStretch): Break | undefined {
  if (first === undefined) return undefined
  if (first.seq !== (head === undefined ? 0 : head.seq + 1)) return { index: 0, reason: 'seq' }
  if (first.prevHash !== (head === undefined ? GENESIS : head.hash)) return { index: 0, reason: 'prev_hash' }
  return undefined
}

function repeatedId({ traceIds }: CheckedStretch, ids: ReturnType<typeof traceIdSet>): Break | undefined {
  const index = ids.addAll(traceIds)
  return index === undefined ? undefined : { index, reason: 'trace_id' }
}

export function pushFeedback({ id, feedback }: Tenant, { record, fault }: ReadLine, columns: string | undefined): void {
  if (feedback.broken !== undefined) return
  if (record === undefined || fault !== undefined) {
    feedback.broken = { index: feedback.checker.count, reason: fault ?? 'parse' }
    return
  }
  feedback.broken = feedback.checker.push(record)
  const index = feedback.checker.count - 1
  if (feedback.broken === undefined && record.tenant_id !== id) feedback.broken = { index, reason: 'tenant' }
  if (feedback.broken === undefined && columns !== undefined && !matchesFeedback(columns, record))
    feedback.broken = { index, reason: 'columns' }
  if (feedback.broken === undefined && feedback.wanted.has(record.seq)) feedback.wanted.set(record.seq, record.hash)
}
