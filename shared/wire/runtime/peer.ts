import { z } from 'zod'
import { sessionEvents } from './session.ts'

const nodeId = z.string().max(64)

/** What can be read of a node through the tunnel that it has dialled. */
export const nodeReadKind = z.enum([
  'data',
  'events',
  'approvals',
  'pool-key',
  'texts',
  'messages',
  'turns',
  'blob',
  'request',
])

/** What one control plane asks another one about a node that has dialled that one. */
export const peerCommand = z.discriminatedUnion('ask', [
  z.strictObject({
    ask: z.literal('read'),
    nodeId,
    kind: nodeReadKind,
    id: z.string().max(1_000_000),
    from: z.int().min(0),
    limit: z.int().min(0).max(100_000),
  }),
  /** Whether the node is connected there. */
  z.strictObject({ ask: z.literal('here'), nodeId }),
  /** Something waits for the node in the store. */
  z.strictObject({ ask: z.literal('wake'), nodeId }),
  z.strictObject({ ask: z.literal('drain'), nodeId, on: z.boolean() }),
  /** The node was removed. */
  z.strictObject({ ask: z.literal('end'), nodeId }),
  /** What was told of the turn of a session after an event; it waits a little for something. */
  z.strictObject({
    ask: z.literal('said'),
    nodeId,
    sessionId: z.string().max(64),
    base: z.int().min(0),
    after: z.int().min(0),
    kept: z.int().min(0),
  }),
  /** The same of a turn that the other process itself may execute; it is absent where it does not. */
  z.strictObject({
    ask: z.literal('said-here'),
    sessionId: z.string().max(64),
    turnId: z.string().max(64),
    base: z.int().min(0),
    after: z.int().min(0),
    kept: z.int().min(0),
  }),
  /** Runs wait in the store for nodes. */
  z.strictObject({ ask: z.literal('queued') }),
])
export type PeerCommand = z.infer<typeof peerCommand>

/** When and of whom it is asked, so that it is of no use later or elsewhere. */
export const peerRequest = z.strictObject({ atMs: z.int(), to: z.string().max(2000), asked: peerCommand })
export type PeerRequest = z.infer<typeof peerRequest>

/** `answered` is false where the node is not connected there, or did not answer in time; `status` is the node's, as HTTP has it. */
export const peerReply = z.strictObject({ answered: z.boolean(), status: z.int().min(0).max(599) })
export type PeerReply = z.infer<typeof peerReply>

const eventId = z.int().min(1)

/**
 * The events of a turn. `covered` is false where not all of it is known there; `again`: what the asker has of it is void, and `events` are
 * all there are.
 */
export const peerTurnEvents = z.strictObject({
  covered: z.boolean(),
  again: z.boolean(),
  events: z.array(
    z.discriminatedUnion('event', [
      z.strictObject({ id: eventId, event: z.literal('message_delta'), data: sessionEvents.message_delta }),
      z.strictObject({ id: eventId, event: z.literal('message_completed'), data: sessionEvents.message_completed }),
      z.strictObject({ id: eventId, event: z.literal('message_error'), data: sessionEvents.message_error }),
    ]),
  ),
})
export type PeerTurnEvents = z.infer<typeof peerTurnEvents>
