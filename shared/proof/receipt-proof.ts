import { fromBase64, toBase64, toHex, utf8 } from '../sign/bytes.ts'
import { canonicalize } from '../sign/jcs.ts'
import { type ChainedEvent, type JournalCheck, journalWalk, type ToHash } from '../sign/journal-walk.ts'
import type { ReceiptPayload, VerifyReason } from '../wire/runtime/receipt.ts'
import { JOURNAL, RECEIPT, unknownMember } from './members.ts'

/** What the host gives: in a browser both answer later. */
export interface ProofCrypto {
  sha256: (given: ToHash) => string | Promise<string>
  isSigned: (
    key: Uint8Array<ArrayBuffer>,
    signature: Uint8Array<ArrayBuffer>,
    message: Uint8Array<ArrayBuffer>,
  ) => Promise<boolean>
}

export interface Envelope {
  payload: Record<string, unknown>
  signature: string
  algorithm: 'Ed25519'
  publicKey?: string | undefined
}

export interface Journal {
  runId: string
  chain: 'sha256-v1'
  genesis?: unknown
  head?: unknown
  eventCount?: unknown
  sealed?: unknown
  events: ChainedEvent[]
}

export interface Refused {
  valid: false
  reason: VerifyReason
  brokenAt?: number
  explanation: string
}

export type ProofResult = { valid: true; payload: ReceiptPayload; journal: 'ok' | 'not_checked' } | Refused

/** What was given is something else altogether, and nothing can be said of it. */
export class NotAProof extends Error {
  override name = 'NotAProof'
  readonly what: 'receipt' | 'journal'
  constructor(what: 'receipt' | 'journal') {
    super(
      what === 'receipt'
        ? 'a receipt: it has no payload, no signature or another algorithm than Ed25519'
        : 'an exported journal: it has no runId, no chain sha256-v1 or no events',
    )
    this.what = what
  }
}

export interface GivenProof {
  /** As `readProof` read it. */
  receipt: unknown
  journal?: unknown
  /** What the verifier knows of the signer: SHA-256 of the public key in hex. */
  fingerprint: string
}

/**
 * Whether a receipt was signed by the key with this fingerprint, and whether a journal is the one it speaks of (docs/spec/proof.md).
 * Nothing is asked of any server or store; when a key was retired or revoked cannot be told from here.
 */
export async function verifyProof(
  { receipt, journal, fingerprint }: GivenProof,
  crypto: ProofCrypto,
): Promise<ProofResult> {
  const envelope = asEnvelope(receipt)
  if (envelope === undefined) throw new NotAProof('receipt')
  const extra = unknownMember(receipt, RECEIPT)
  if (extra !== undefined) return refused('unknown_member', `a receipt has no member ${extra}`)
  const key = plainBase64(envelope.publicKey ?? '')
  const found = await crypto.sha256({ before: toHex(key), text: '' })
  if (key.length !== 32 || found !== fingerprint.toLowerCase())
    return refused('unknown_key', 'the public key in the receipt is not the one with this fingerprint')
  if (envelope.payload.keyId !== found.slice(0, 16))
    return refused('unknown_key', 'the receipt names another key than the one it carries')
  const message = signedBytes(envelope.payload)
  const signed = message !== undefined && (await crypto.isSigned(key, plainBase64(envelope.signature), message))
  if (!signed || !isPayload(envelope.payload))
    return refused('signature_invalid', 'the receipt was changed after it was signed, or never signed with this key')
  const { payload } = envelope
  if (journal === undefined) return { valid: true, payload, journal: 'not_checked' }
  return (await journalFault(journal, payload, crypto)) ?? { valid: true, payload, journal: 'ok' }
}

/**
 * A receipt is signed in the commit that ends its run; that of a run on a node when its end is reported, with the node's own signature. One
 * that was signed later says what the store held then.
 */
export function lateness({ finishedAt, issuedAt, node }: ReceiptPayload): string | undefined {
  if (node !== undefined || issuedAt === finishedAt) return undefined
  return `signed ${issuedAt}, not in the commit that ended the run: it says what the store held then`
}

/** Why a journal is not the one that a signed payload speaks of. */
export async function journalFault(
  given: unknown,
  { runId, eventCount, journalHash }: Pick<ReceiptPayload, 'runId' | 'eventCount' | 'journalHash'>,
  crypto: Pick<ProofCrypto, 'sha256'>,
): Promise<Refused | undefined> {
  const journal = asJournal(given)
  if (journal === undefined) throw new NotAProof('journal')
  const extra = unknownMember(given, JOURNAL)
  if (extra !== undefined) return refused('unknown_member', `a journal has no member ${extra}`)
  const walk = journalWalk(runId, journal.events)
  let genesis: string | undefined
  let checked: JournalCheck
  for (let step = walk.next(); ; ) {
    if (step.done) {
      checked = step.value
      break
    }
    const hash = await crypto.sha256(step.value)
    genesis ??= hash
    step = walk.next(hash)
  }
  const fault = walkFault(checked, { eventCount, journalHash })
  if (fault !== undefined) return fault
  const said = Object.entries({ runId, genesis, head: journalHash, eventCount, sealed: true })
  const other = said.find(([name, value]) => Object.hasOwn(journal, name) && journal[name as 'head'] !== value)
  return other && refused('journal_header_mismatch', `its member ${other[0]} says something else than its events`)
}

/** What a walk over a journal came to. */
export type Walk = { ok: true; count: number; head: string } | { ok: false; brokenAt: number }

/** Why the journal that was walked is not the one under the signature. */
export function walkFault(
  walk: Walk,
  { eventCount, journalHash }: Pick<ReceiptPayload, 'eventCount' | 'journalHash'>,
): Refused | undefined {
  if (!walk.ok) {
    const { brokenAt } = walk
    return { ...refused('chain_broken', 'an event was edited, moved, left out or put in'), brokenAt }
  }
  if (walk.count !== eventCount)
    return refused('event_count_mismatch', 'events are missing at the end, or were added there')
  if (walk.head !== journalHash)
    return refused('journal_hash_mismatch', 'the journal holds together, and it is another one than was signed')
  return undefined
}

/** What a receipt's signature covers; undefined for what has no canonical form, which cannot have been signed. */
export function signedBytes(payload: unknown): Uint8Array<ArrayBuffer> | undefined {
  try {
    return utf8(canonicalize(payload))
  } catch {
    return undefined
  }
}

/** A signature has 64 bytes and a key 32: what is longer is neither, and is not read. */
const SIGNATURE_CHARS = 88

/** Standard base64 with its padding, in its one spelling; nothing for any other text. */
export function plainBase64(text: string): Uint8Array<ArrayBuffer> {
  if (text.length > SIGNATURE_CHARS) return new Uint8Array(0)
  try {
    const bytes = fromBase64(text)
    if (toBase64(bytes) === text) return bytes
  } catch {
    // The same as another spelling.
  }
  return new Uint8Array(0)
}

const TEXTS =
  'runId tenantId agentName agentVersionId manifestHash inputHash outputHash isolation nodeId journalHash createdAt finishedAt issuedAt keyId'.split(
    ' ',
  )
const ENDS: readonly unknown[] = ['succeeded', 'failed', 'cancelled']

/** Whether what was signed is the payload of a receipt. */
export function isPayload(payload: unknown): payload is ReceiptPayload {
  if (!isObject(payload)) return false
  const { version, chain, status, tokensIn, tokensOut, eventCount, costUsd, models, node } = payload
  return (
    version === 1 &&
    chain === 'sha256-v1' &&
    ENDS.includes(status) &&
    TEXTS.every(name => typeof payload[name] === 'string') &&
    [tokensIn, tokensOut, eventCount].every(count => Number.isSafeInteger(count) && Number(count) >= 0) &&
    typeof costUsd === 'number' &&
    Array.isArray(models) &&
    models.every(model => typeof model === 'string') &&
    (node === undefined || (isObject(node) && [node.publicKey, node.signature].every(one => typeof one === 'string')))
  )
}

function asEnvelope(value: unknown): Envelope | undefined {
  if (!isObject(value)) return undefined
  const { payload, signature, algorithm, publicKey } = value
  const whole =
    isObject(payload) &&
    typeof signature === 'string' &&
    algorithm === 'Ed25519' &&
    (publicKey === undefined || typeof publicKey === 'string')
  return whole ? { payload, signature, algorithm, publicKey } : undefined
}

function asJournal(value: unknown): Journal | undefined {
  if (!isObject(value)) return undefined
  const { runId, chain, events } = value
  const whole =
    typeof runId === 'string' &&
    chain === 'sha256-v1' &&
    Array.isArray(events) &&
    events.every(event => isObject(event))
  return whole ? (value as unknown as Journal) : undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function refused(reason: VerifyReason, explanation: string): Refused {
  return { valid: false, reason, explanation }
}
