import { z } from 'zod'
import { count, freeForm } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { approvalReason, proposedAction } from './approval.ts'
import { hex64, id, timestamp } from './conventions.ts'
import { stepKind } from './run.ts'

export const CHAIN = 'sha256-v1'

/** Exactly the members that the chain hashes (docs/spec/proof.md); aliases on the stream are not among them. */
export const hashedMembers = ['seq', 'kind', 'stepId', 'runId', 'attempt', 'at', 'payload', 'meta'] as const

/** Outputs over 256 KiB are kept beside the journal. */
export const blobRef = z.object({
  $blob: z.object({ sha256: hex64, bytes: count, mediaType: z.string() }),
})
export type BlobRef = z.infer<typeof blobRef>

// Payloads and meta stay open: a member that a later version adds must survive parsing, or the hash would not.
export const payloads = {
  step_started: z.looseObject({}),
  step_completed: z.looseObject({ output: z.unknown() }),
  step_failed: z.looseObject({ error: z.string(), code: z.string(), transient: z.boolean() }),
  step_retrying: z.looseObject({
    /** The attempt that failed. */
    attempt: z.int().min(1),
    of: z.int().min(1),
    error: z.string(),
    code: z.string(),
    delayMs: z.number().min(0),
    nextAt: timestamp,
    /** The provider was not reached, or turned the call away: nothing of it is billed. */
    unbilled: z.literal(true).optional(),
  }),
  step_waiting: z.looseObject({
    approvalId: z.string(),
    reason: approvalReason,
    prompt: z.string(),
    expiresAt: timestamp,
    action: proposedAction.optional(),
  }),
  confidence_evaluated: z.looseObject({
    score: z.number(),
    threshold: z.number(),
    /** A score equal to the threshold executes. */
    decision: z.enum(['execute', 'divert']),
    estimator: z.string(),
    gate: z.string(),
  }),
  anomaly_detected: z.looseObject({
    kind: z.enum(['runaway_loop', 'excessive_steps', 'retry_storm', 'cost_spike', 'token_spike']),
    observed: z.number(),
    limit: z.number(),
    message: z.string(),
    action: z.enum(['report', 'wait', 'fail']),
  }),
} as const

export type EventKind = keyof typeof payloads
export const eventKinds = Object.keys(payloads) as [EventKind, ...EventKind[]]

export type PayloadOf<K extends EventKind> = z.infer<(typeof payloads)[K]>

/** What passed between a sandbox and one place outside of it; refused calls reached nothing. */
export const reachedPlace = named(
  'ReachedPlace',
  z.object({
    host: z.string(),
    port: count,
    /** The one that was connected to, as the name was resolved for that call. */
    address: z.string().optional(),
    calls: count,
    refused: count,
    sentBytes: count,
    receivedBytes: count,
  }),
)
export type Reached = z.infer<typeof reachedPlace>

/** What the fixed payloads cannot carry; `{}` when there is nothing. */
export const eventMeta = named(
  'EventMeta',
  z.looseObject({
    stepKind: stepKind.optional(),
    name: z.string().optional(),
    inputHash: z.string().optional(),
    idempotencyKey: z.string().optional(),
    nodeId: z.string().optional(),
    tokensIn: count.optional(),
    tokensOut: count.optional(),
    costUsd: z.number().optional(),
    provider: z.string().optional(),
    model: z.string().optional(),
    durationMs: z.number().optional(),
    copiedFrom: z.unknown().optional(),
    unpriced: z.boolean().optional(),
    /** Of a call that was cut off: part of its tokens are counted from bytes. */
    estimated: z.boolean().optional(),
    /** Where the programs of its sandbox have been, for up to a hundred places; the others are one row named `(more)`. */
    egress: z.array(reachedPlace).optional(),
    /** Gates of the router that the answer did not pass: it was served because none passed them. */
    gatesFailed: z.array(z.string()).optional(),
    /** Of `tokensIn`: read from the provider's cache, and written to it. */
    cacheReadTokens: count.optional(),
    cacheWriteTokens: count.optional(),
    /** Of a model step: what of its request stands in no other event, where it differs from that of the model step before. */
    request: z.looseObject({ contextTokens: count.optional(), tools: hex64.optional() }).optional(),
  }),
)
export type EventMeta = z.infer<typeof eventMeta>

const base = {
  seq: z.int().min(1),
  stepId: z.string(),
  runId: id,
  attempt: z.int().min(1),
  at: timestamp,
  meta: eventMeta,
  hash: hex64,
}

/** `step_started` is `JournalStepStarted`: generators of clients have no other name for a member of a union. */
const nameOf = (kind: string) => `Journal${kind.replace(/(?:^|_)(.)/g, (_, first: string) => first.toUpperCase())}`

const eventOf = <K extends EventKind>(kind: K) =>
  named(nameOf(kind), z.object({ ...base, kind: z.literal(kind), payload: payloads[kind] }))

export const journalEvent = named(
  'JournalEvent',
  z.discriminatedUnion('kind', [
    eventOf('step_started'),
    eventOf('step_completed'),
    eventOf('step_failed'),
    eventOf('step_retrying'),
    eventOf('step_waiting'),
    eventOf('confidence_evaluated'),
    eventOf('anomaly_detected'),
  ]),
)
export type JournalEvent = z.infer<typeof journalEvent>

/** The `data:` line of a run stream: the event plus aliases that are never hashed. */
export const runEventData = named(
  'RunEvent',
  z.object({
    ...base,
    kind: z.enum(eventKinds),
    payload: freeForm,
    ts: timestamp.optional(),
    data: freeForm.optional(),
    createdAt: timestamp.optional(),
  }),
)
export type RunEventData = z.infer<typeof runEventData>

export const journalExport = named(
  'JournalExport',
  z.object({
    runId: id,
    chain: z.literal(CHAIN),
    genesis: hex64,
    head: hex64,
    eventCount: count,
    sealed: z.boolean(),
    events: z.array(journalEvent),
  }),
)
export type JournalExport = z.infer<typeof journalExport>

const claimed = z.unknown().optional()

/**
 * An event as it is claimed to have been. Nothing in it is checked here: a forged payload or time, a number as a text and a member
 * that is missing must come back as "the chain is broken here", and a member that no event has as such, not as a malformed request.
 */
export const claimedEvent = z.looseObject({
  seq: claimed,
  kind: claimed,
  stepId: claimed,
  runId: claimed,
  attempt: claimed,
  at: claimed,
  payload: claimed,
  meta: claimed,
  hash: claimed,
})

export const claimedJournal = named(
  'ClaimedJournal',
  z.looseObject({
    runId: z.string(),
    chain: z.literal(CHAIN),
    genesis: claimed,
    head: claimed,
    eventCount: claimed,
    sealed: claimed,
    events: z.array(claimedEvent),
  }),
)
export type ClaimedJournal = z.infer<typeof claimedJournal>
