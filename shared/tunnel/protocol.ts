import { toHex, utf8 } from '../sign/bytes.ts'
import { canonicalize } from '../sign/jcs.ts'
import type { Complete } from './gateway.gen.ts'

/** The version of the tunnel; it goes into the first frame. */
export const PROTO = 1

/** Larger frames are refused: a run's input and an agent's files are below 2 MiB together. */
export const MOST_FRAME_BYTES = 4 * 1024 * 1024

/** What a node signs to get a new access token (docs/spec/runtime.md §14). */
export function refreshMessage(nodeId: string, atUnix: number, nonce: Uint8Array): Uint8Array<ArrayBuffer> {
  return utf8(`waybill/refresh/v1\n${nodeId}\n${atUnix}\n${toHex(nonce)}`)
}

/** What a node signs about a run that it has brought to its end. */
export function completeMessage(complete: Omit<Complete, '$typeName' | 'nodeSignature'>): Uint8Array<ArrayBuffer> {
  const { runId, epoch, status, errorCode, errorStep, eventCount, tokensIn, tokensOut, costNanoUsd } = complete
  return utf8(
    `waybill/complete/v1\n${canonicalize({
      runId,
      status,
      errorCode,
      errorStep,
      models: complete.models,
      isolation: complete.isolation,
      epoch: Number(epoch),
      eventCount: Number(eventCount),
      finishedMs: Number(complete.finishedUnixMs),
      tokensIn: Number(tokensIn),
      tokensOut: Number(tokensOut),
      costNano: Number(costNanoUsd),
      head: toHex(complete.head),
      inputHash: toHex(complete.inputHash),
      outputHash: toHex(complete.outputHash),
    })}`,
  )
}

const WEIGHED_BYTES = 8 * 1024

/** The room that a frame takes among those that wait: one, and one more for every 8 KiB of its texts and sealed payloads. */
export function frameWeight({ body }: { body: { value?: object | undefined } }): number {
  let bytes = 0
  for (const value of Object.values(body.value ?? {})) {
    if (typeof value === 'string' || value instanceof Uint8Array) bytes += value.length
  }
  return 1 + Math.floor(bytes / WEIGHED_BYTES)
}

/** Why an end of the tunnel will not go on with the other. */
export type RefusalCode =
  | 'unauthenticated' // no token, a bad one, an expired one, or a first frame that is not the node's hello
  | 'removed' // there is no such node any more
  | 'unknown_protocol' // the other end speaks a version that this one does not
  | 'out_of_order' // a frame is missing before this one
  | 'too_large' // a frame is larger than this end reads
  | 'bad_frame' // a frame that its sender may not send, or that says nothing
  | 'replaced' // the same node has dialled again
  | 'not_ready' // what was asked needs something that is not there now; the same call may work later
  | 'closing' // this end is stopping

/** Ends a stream or a call, with the reason that the other end gets. */
export class TunnelRefusal extends Error {
  override name = 'TunnelRefusal'
  readonly code: RefusalCode
  constructor(code: RefusalCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
