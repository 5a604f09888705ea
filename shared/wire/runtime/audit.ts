import { z } from 'zod'
import { fromText, query } from '../aliases.ts'
import { count, int } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { hex64, timestamp } from './conventions.ts'

/** One administrative act, one decision about a call out of a sandbox, or a run's use of a secret that was refused. Everything but `hash` is under the hash, as canonical JSON after the hash before it. */
export const auditEntry = named(
  'AuditEntry',
  z.object({
    /** From 1, without gaps, for each tenant. */
    seq: count,
    tenantId: z.string(),
    at: timestamp,
    /** The id of the key or of the person, `command line`, or `setup link`; of what a run did the id of the run. */
    actor: z.string(),
    via: z.enum(['api', 'dashboard', 'cli', 'setup', 'sandbox', 'run']),
    /** The id of the operation, as the OpenAPI document has it: `createApiKey`. */
    action: z.string(),
    /** The path that was called, with the ids and names in it. */
    target: z.string(),
    /** What it made, where it made something. */
    object: z.string().optional(),
    /** Which members were to be changed; never their values. */
    fields: z.array(z.string()).optional(),
    /** `unknown`: the service died, or failed, before it could tell whether the act was done. `refused`: what a run was not let do. */
    outcome: z.enum(['done', 'unknown', 'refused']),
    /** Why it was refused. */
    reason: z.string().optional(),
    requestId: z.string().optional(),
    hash: hex64,
  }),
)
export type AuditEntry = z.infer<typeof auditEntry>

/** A place in the chain that was noted earlier: the log must still run through it. */
export const auditVerifyQuery = query({
  seq: fromText(int(1, Number.MAX_SAFE_INTEGER)).optional(),
  hash: hex64.optional(),
})

export const auditVerified = named(
  'AuditVerified',
  z.object({
    valid: z.boolean(),
    entries: count,
    /** Note these two somewhere else: a later check can then tell that nothing was taken away or rewritten since. */
    head: z.object({ seq: count, hash: hex64 }).optional(),
    brokenAt: count.optional(),
    /** `seq`: missing or moved, `hash`: changed, `head`: the end was cut off, `noted`: not the chain that was noted. */
    reason: z.enum(['seq', 'hash', 'head', 'noted']).optional(),
  }),
)
export type AuditVerified = z.infer<typeof auditVerified>
