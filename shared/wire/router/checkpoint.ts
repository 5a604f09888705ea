import { z } from 'zod'
import { fromText, query } from '../aliases.ts'
import { count, int, shape, text } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { hex64, tenantId, timestamp } from './conventions.ts'

export const keyId = shape(/^[0-9a-f]{16}$/, '16 lower-case hexadecimal digits')

const members = {
  v: z.literal(1),
  kind: z.enum(['head', 'prune']),
  tenant_id: tenantId,
  /** Of the last record covered; -1 for a chain without records. */
  seq: int(-1),
  hash: hex64,
  feedback_seq: int(-1),
  feedback_hash: hex64,
  ts: timestamp,
  key_id: keyId,
  /** SHA-256 of the previous checkpoint's signed bytes; the first holds zeros. */
  prev_checkpoint: hex64,
}

/** The signed members, as JCS reads them. */
export const checkpointBody = z.strictObject(members)
export type CheckpointBody = z.infer<typeof checkpointBody>

export const checkpoint = named(
  'Checkpoint',
  z.strictObject({ ...members, sig: shape(/^[A-Za-z0-9_-]{86}$/, '64 bytes of base64url without padding') }),
)
export type Checkpoint = z.infer<typeof checkpoint>

export const checkpointListQuery = query({
  after: text(1, 512).optional(),
  limit: fromText(int(1, 500).default(50)),
})

export const checkpointList = named(
  'CheckpointList',
  z.object({ checkpoints: z.array(checkpoint), next: z.string().nullable() }),
)
export type CheckpointList = z.infer<typeof checkpointList>

export const routerKeys = named(
  'RouterReceiptKeys',
  z.object({
    v: z.literal(1),
    keys: z.array(
      z.object({
        key_id: keyId,
        alg: z.literal('Ed25519'),
        public_key: z.string(),
        created_at: timestamp,
        retired_at: timestamp.optional(),
      }),
    ),
    heads_url: z.string(),
  }),
)
export type RouterKeys = z.infer<typeof routerKeys>

/** Answer of `verify`, on the command line and of the audit tool. */
export const verifyReport = named(
  'VerifyReport',
  z.object({
    valid: z.boolean(),
    /** Of a file that is not valid though no chain in it is broken: `unsigned`, `no_key`, or why a line of it cannot be read; of several stores `two_shards`. */
    reason: z.string().optional(),
    records: count,
    tenants: z.array(
      z.object({
        tenant_id: z.string(),
        records: count,
        /** 0-based position of the first record that fails any check. */
        broken_at: count.nullable(),
        reason: z.string().nullable(),
        last_checkpoint: count.nullable(),
        unanchored_tail: count,
        /** Reports behind the last checkpoint, where feedback is checked. */
        unanchored_feedback: count,
      }),
    ),
  }),
)
export type VerifyReport = z.infer<typeof verifyReport>
