import { readJson } from '../../shared/json/read-json.ts'
import { type Members, unknownMember } from '../../shared/proof/members.ts'
import { ProofTextError, readProof } from '../../shared/proof/read-proof.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import type { RowPart } from './trace-row.ts'

/** What a verification reads of a record: its place and its hash, and what its row repeats. */
export type ReadRecord = RowPart & Pick<TraceRecord, 'seq' | 'hash' | 'prev_hash'>

/** One line as it was read. */
export interface ReadLine {
  /** Undefined for what is no JSON object. Its members are checked one by one where they are used. */
  record: ReadRecord | undefined
  /** Why nothing more is said of the line. */
  fault: 'parse' | 'duplicate_member' | 'number_form' | 'lone_surrogate' | 'unknown_member' | undefined
}

/** A line of an export or of a store, read strictly. */
export function readLine(text: string, members: Members): ReadLine {
  try {
    const value = readProof(text)
    if (!isObject(value)) return { record: undefined, fault: 'parse' }
    const fault = unknownMember(value, members) === undefined ? undefined : 'unknown_member'
    return { record: value as unknown as ReadRecord, fault }
  } catch (error) {
    if (!(error instanceof ProofTextError)) throw error
    const fault = error.reason === 'not_json' ? 'parse' : error.reason
    return { record: parseRecord(text), fault }
  }
}

/** The record of a line that is not what it should be: it says in which chain that is. */
function parseRecord(text: string): ReadRecord | undefined {
  try {
    const value: unknown = readJson(text)
    return isObject(value) ? (value as unknown as ReadRecord) : undefined
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
