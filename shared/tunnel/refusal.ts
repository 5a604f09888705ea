/** Why an end of the tunnel will not go on with the other. */
export type RefusalCode =
  | 'unauthenticated' // no token, a bad one, an expired one, or a first frame that is not the node's hello
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
