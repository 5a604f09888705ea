import { z } from 'zod'
import { count, expected, freeForm } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { hex64, id, timestamp, usd } from './conventions.ts'
import { isolationStored } from './isolation.ts'
import { CHAIN, claimedJournal } from './journal.ts'

export const RECEIPT_ALGORITHM = 'Ed25519'

export const keyId = z.string().regex(/^[0-9a-f]{16}$/)

export const receiptPayload = named(
  'ReceiptPayload',
  z.object({
    version: z.literal(1),
    runId: id,
    tenantId: z.string(),
    agentName: z.string(),
    agentVersionId: id,
    manifestHash: hex64,
    status: z.enum(['succeeded', 'failed', 'cancelled']),
    inputHash: hex64,
    outputHash: hex64,
    tokensIn: count,
    tokensOut: count,
    costUsd: usd,
    models: z.array(z.string()),
    isolation: isolationStored,
    nodeId: z.string(),
    chain: z.literal(CHAIN),
    /** h_n of the run's journal. */
    journalHash: hex64,
    eventCount: count,
    createdAt: timestamp,
    finishedAt: timestamp,
    issuedAt: timestamp,
    keyId,
    /** Of a run on a node elsewhere: the node's raw Ed25519 key and its signature over the end that it told, both in base64. */
    node: z.object({ publicKey: z.string(), signature: z.string() }).optional(),
  }),
)
export type ReceiptPayload = z.infer<typeof receiptPayload>

export const receipt = named(
  'Receipt',
  z.object({
    payload: receiptPayload,
    /** Standard base64 of 64 bytes. */
    signature: z.string(),
    algorithm: z.literal(RECEIPT_ALGORITHM),
    /** Standard base64 of the raw 32 bytes; their SHA-256 is the fingerprint, and its beginning the payload's `keyId`. */
    publicKey: z.string(),
  }),
)
export type Receipt = z.infer<typeof receipt>

/**
 * A receipt as it is claimed to have been: the payload is not looked into, because a forged one is "signature_invalid", and what
 * stands beside it is for the verifier to name.
 */
export const claimedReceipt = named(
  'ClaimedReceipt',
  z.looseObject(
    {
      payload: freeForm,
      signature: z.string(),
      algorithm: z.literal(RECEIPT_ALGORITHM),
      publicKey: z.string().optional(),
    },
    { error: expected('an object') },
  ),
)
export type ClaimedReceipt = z.infer<typeof claimedReceipt>

const verifyParts = z.strictObject({ receipt: claimedReceipt, journal: claimedJournal.optional() })

/** Either the envelope itself or `{ receipt, journal? }`; always read as the latter. */
export const verifyRequest = named(
  'ReceiptVerifyRequest',
  z.union([verifyParts, claimedReceipt]).transform((body): z.output<typeof verifyParts> => {
    const alone = claimedReceipt.safeParse(body)
    return alone.success ? { receipt: alone.data } : verifyParts.parse(body)
  }),
)
export type VerifyRequest = z.output<typeof verifyRequest>

export const verifyReasons = [
  'duplicate_member',
  'unknown_member',
  'number_form',
  'lone_surrogate',
  'signature_invalid',
  'unknown_key',
  'key_revoked',
  'key_not_valid',
  'chain_broken',
  'event_count_mismatch',
  'journal_hash_mismatch',
  'journal_header_mismatch',
  'record_mismatch',
  'input_hash_mismatch',
  'output_hash_mismatch',
] as const
export const verifyReason = z.enum(verifyReasons)
export type VerifyReason = z.infer<typeof verifyReason>

const outcome = z.enum(['ok', 'failed', 'not_checked'])

export const verifyResult = named(
  'ReceiptVerifyResult',
  z.object({
    valid: z.boolean(),
    reason: verifyReason.optional(),
    runId: z.string().optional(),
    /** Left out where there is no authentication. */
    tenantId: z.string().optional(),
    issuedAt: z.string().optional(),
    keyId: z.string().optional(),
    checks: z.object({ signature: outcome, journal: outcome, record: outcome }),
    /** `seq` of the first event that does not fit. */
    brokenAt: z.int().optional(),
  }),
)
export type VerifyResult = z.infer<typeof verifyResult>

export const receiptKey = z.object({
  keyId,
  publicKey: z.string(),
  keyFingerprint: hex64,
  status: z.enum(['active', 'retired', 'revoked']),
  notBefore: timestamp,
  notAfter: timestamp.optional(),
})
export type ReceiptKey = z.infer<typeof receiptKey>

export const receiptKeys = named(
  'ReceiptKeys',
  z.object({
    algorithm: z.literal(RECEIPT_ALGORITHM),
    keyId,
    /** Standard base64 of the raw 32 bytes. */
    publicKey: z.string(),
    keyFingerprint: hex64,
    chain: z.literal(CHAIN),
    canonicalization: z.literal('RFC8785'),
    keys: z.array(receiptKey),
    docs: z.string(),
  }),
)
export type ReceiptKeys = z.infer<typeof receiptKeys>
