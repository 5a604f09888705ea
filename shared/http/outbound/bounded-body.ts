import { joined } from '../../sign/bytes.ts'

/** The first `maxBytes` of a body; leaving it early tells the other side to stop. */
export async function readAtMost(
  answer: Response,
  maxBytes: number,
): Promise<{ body: Uint8Array<ArrayBuffer>; truncated: boolean }> {
  if (answer.body === null) return { body: new Uint8Array(0), truncated: false }
  const reader = answer.body.getReader()
  const chunks: Uint8Array[] = []
  let left = maxBytes
  let truncated = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      if (value.length > left) {
        chunks.push(value.subarray(0, left))
        truncated = true
        break
      }
      left -= value.length
      chunks.push(value)
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
  return { body: joined(chunks), truncated }
}

/** The rule does not let a call out. Repeating it changes nothing until a setting does. */
export class OutboundDenied extends Error {
  override name = 'OutboundDenied'
  /** The far end was asked, and may have acted before it answered with a redirect. */
  readonly mayBeDone: boolean

  constructor(message: string, { mayBeDone = false } = {}) {
    super(message)
    this.mayBeDone = mayBeDone
  }
}

/**
 * The proxy on the way out does not let a call through, or cannot be used: nothing has reached the far end. It has no cause: that
 * names the address of the proxy, which is the operator's alone.
 */
export class ProxyError extends Error {
  override name = 'ProxyError'
}

/** The refusal in what a host's client threw. */
export const denialIn = (error: unknown): OutboundDenied | undefined => causeIn(error, OutboundDenied)

/** What a proxy on the way did, in what a host's client threw. */
export const proxyFaultIn = (error: unknown): ProxyError | undefined => causeIn(error, ProxyError)

/** The error of this kind, however deep it stands among the causes. */
function causeIn<T extends Error>(error: unknown, kind: abstract new (...given: never[]) => T): T | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (at instanceof kind) return at
  }
  return undefined
}
