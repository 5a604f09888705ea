import { refreshMessage } from '../../shared/tunnel/protocol.ts'
import type { Identity } from './identity.ts'
import type { NodeTransport } from './transport.ts'

/** A token is renewed when it has a quarter of its hour left. */
const RENEW_BEFORE_MS = 15 * 60_000

/** The access token of this process, renewed by a proof that this is the node (docs/spec/runtime.md §14). */
export function nodeAccess({ nodeId, signer }: Identity, transport: NodeTransport, now: () => Date) {
  let held: { token: string; expiresMs: number } | undefined
  return {
    async token(): Promise<string> {
      const nowMs = now().getTime()
      if (held && held.expiresMs - nowMs > RENEW_BEFORE_MS) return held.token
      const nonce = crypto.getRandomValues(new Uint8Array(24))
      const atUnix = Math.floor(nowMs / 1000)
      const signature = await signer.sign(refreshMessage(nodeId, atUnix, nonce))
      const reply = await transport.refresh({ nodeId, atUnix: BigInt(atUnix), nonce, signature })
      held = { token: reply.accessToken, expiresMs: Number(reply.expiresUnix) * 1000 }
      return held.token
    },
    /** It was refused: the next one is asked for anew. */
    drop(): void {
      held = undefined
    },
  }
}
