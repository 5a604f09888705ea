import { Hono } from 'hono'
import type { PlatformNodes } from '../../../shared/wire/runtime/node.ts'

/** Where nodes dial in, and whose certificate they should find there. */
export type TunnelEndpoint = Pick<PlatformNodes, 'endpoint' | 'tlsFingerprint'>

export interface WellKnownDeps {
  /** Undefined while this host listens for no nodes. */
  endpoint: () => TunnelEndpoint | undefined
}

/** An empty address says that no process listens for nodes here. */
export function platformNodesRoute({ endpoint }: WellKnownDeps) {
  return new Hono().get('/.well-known/platform-nodes', c => {
    const found = endpoint() ?? { endpoint: '', tlsFingerprint: null }
    return c.json({ ...found, proto: 1 } satisfies PlatformNodes)
  })
}
