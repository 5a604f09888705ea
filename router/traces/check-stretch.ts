import { readJson } from '../../shared/json/read-json.ts'
import { recordHash } from '../../shared/sign/record-chain.ts'
import type { Sha256 } from '../../shared/sign/sha256.ts'
import type { ChainHead } from './canonical-trace.ts'
import type { ReadLine, ReadRecord } from './record-reader.ts'
import { newTraceIdList, pushTraceId, type TraceIdList } from './trace-ids.ts'
import { rowOf } from './trace-row.ts'

/** One record as it is stored or exported. */
export interface RecordLine {
  text: string
  /** Of a store: whose row it is, and its columns as a JSON array. */
  tenantId?: string
  columns?: string
}

export interface Break {
  /** Position in the tenant's records, or in the stretch, counted from 0. */
  index: number
  reason: string
}

/** A stretch of one tenant's chain that was checked by itself, and what is needed to join it to the one before. */
export interface CheckedStretch {
  tenantId: string
  records: number
  /** The first record that fails, by itself or against the one before it in the stretch. */
  broken: Break | undefined
  /** What the first record says about its place; undefined when it could not be read. */
  first: { seq: unknown; prevHash: unknown } | undefined
  /** The last record. */
  head: ChainHead | undefined
  /** Of the records before the break, in order; of the one that fails too, when its id was reached. */
  traceIds: TraceIdList
  /** Hashes of the records that a checkpoint or an anchor names. */
  hashes: [seq: number, hash: string][]
}

/** Checks a stretch record by record; what comes after the first break is only counted. */
export function stretchCheck(tenantId: string, wanted: { has(seq: number): boolean }, sha256: Sha256) {
  const stretch: CheckedStretch = {
    tenantId,
    records: 0,
    broken: undefined,
    first: undefined,
    head: undefined,
    traceIds: newTraceIdList(),
    hashes: [],
  }

  function fault(line: RecordLine, { record, fault }: ReadLine): string | undefined {
    if (fault !== undefined) return fault
    if (record === undefined || typeof record.trace_id !== 'string') return 'parse'
    const { head } = stretch
    if (stretch.first === undefined) stretch.first = { seq: record.seq, prevHash: record.prev_hash }
    else if (head === undefined || record.seq !== head.seq + 1) return 'seq'
    else if (record.prev_hash !== head.hash) return 'prev_hash'
    if (!holdsOwnHash(record, sha256)) return 'hash'
    if (record.tenant_id !== tenantId) return 'tenant'
    pushTraceId(stretch.traceIds, record.trace_id)
    if (line.columns !== undefined && !matchesColumns(line.columns, record)) return 'columns'
    return undefined
  }

  return {
    stretch,
    push(line: RecordLine, read: ReadLine): void {
      const index = stretch.records++
      if (stretch.broken !== undefined) return
      const { record } = read
      const reason = fault(line, read)
      if (reason !== undefined || record === undefined) {
        stretch.broken = { index, reason: reason ?? 'parse' }
        return
      }
      stretch.head = { seq: record.seq, hash: record.hash }
      if (wanted.has(record.seq)) stretch.hashes.push([record.seq, record.hash])
    },
  }
}

/** Whether the record's hash is that of its canonical form without it. */
function holdsOwnHash(record: ReadRecord, sha256: Sha256): boolean {
  try {
    return recordHash(record, sha256) === record.hash
  } catch {
    // Nested deeper than a form can be made.
    return false
  }
}

function matchesColumns(columns: string, record: ReadRecord): boolean {
  try {
    const expected = JSON.stringify(rowOf(record, record.seq))
    // SQL and JSON.stringify may escape a character differently; the values decide.
    return columns === expected || JSON.stringify(readJson(columns)) === expected
  } catch {
    return false
  }
}
