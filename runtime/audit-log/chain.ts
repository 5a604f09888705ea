import { readJson } from '../../shared/json/read-json.ts'
import { concat, fromHex, toHex, utf8 } from '../../shared/sign/bytes.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { type Sha256, sha256 } from '../../shared/sign/sha256.ts'
import type { AuditEntry, AuditVerified } from '../../shared/wire/runtime/audit.ts'

export interface AuditHead {
  seq: number
  hash: string
}

/** An entry as it is stored: the text under the hash, and the hash. */
export interface SealedEntry extends AuditHead {
  body: string
}

/** Where the chain of a tenant begins; an entry of one tenant is never one of another's. */
export function auditGenesis(tenantId: string, hash: Sha256 = sha256): AuditHead {
  return { seq: 0, hash: toHex(hash(utf8('waybill/audit/v1\n' + tenantId))) }
}

/** Gives an entry the place after `head`: SHA-256 over the hash before it and its canonical text, as a run's journal has it. */
export function sealEntry(head: AuditHead, entry: Omit<AuditEntry, 'seq' | 'hash'>): SealedEntry {
  const seq = head.seq + 1
  const body = canonicalize({ ...entry, seq })
  return { seq, body, hash: linked(head.hash, body, sha256) }
}

function linked(previous: string, body: string, hash: Sha256): string {
  return toHex(hash(concat(fromHex(previous), utf8(body))))
}

export interface Checking {
  tenantId: string
  /** A place that was noted earlier. */
  noted?: Partial<AuditHead>
}

/** Recomputes a chain entry by entry, in constant memory. `brokenAt` is the number of the first entry that does not fit. */
export function auditChecker({ tenantId, noted = {} }: Checking, hash: Sha256 = sha256) {
  let head = auditGenesis(tenantId, hash)
  let entries = 0
  let broken: Pick<AuditVerified, 'brokenAt' | 'reason'> | undefined
  let notedSeen = noted.seq === undefined

  return {
    push({ seq, body, hash: given }: SealedEntry): void {
      entries++
      if (broken) return
      const expected = head.seq + 1
      if (seq !== expected || seqIn(body) !== expected) broken = { brokenAt: expected, reason: 'seq' }
      else if (linked(head.hash, body, hash) !== given) broken = { brokenAt: expected, reason: 'hash' }
      else {
        head = { seq, hash: given }
        if (seq === noted.seq) {
          notedSeen = true
          if (noted.hash !== undefined && noted.hash !== given) broken = { brokenAt: seq, reason: 'noted' }
        }
      }
    },
    /** The verdict; `end` is where the store says that the chain ends. */
    end(end: AuditHead | undefined): AuditVerified {
      const told = end ?? auditGenesis(tenantId, hash)
      if (!broken && (told.seq !== head.seq || told.hash !== head.hash)) {
        broken = { brokenAt: head.seq + 1, reason: 'head' }
      }
      if (!broken && !notedSeen) broken = { brokenAt: head.seq + 1, reason: 'noted' }
      if (broken) return { valid: false, entries, ...broken }
      return { valid: true, entries, ...(head.seq > 0 && { head }) }
    },
  }
}

function seqIn(body: string): number | undefined {
  try {
    return (readJson(body) as { seq?: number }).seq
  } catch {
    return undefined
  }
}
