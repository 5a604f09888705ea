import { nodeEndpoints } from '../../../shared/wire/runtime/endpoints/nodes.ts'
import type { PlatformNodes } from '../../../shared/wire/runtime/node.ts'
import { type Operation, operation } from '../../http/operation.ts'

/** Where nodes dial in, and whose certificate they should find there. */
export type TunnelEndpoint = Pick<PlatformNodes, 'endpoint' | 'tlsFingerprint'>

export interface WellKnownDeps {
  /** Undefined while this host listens for no nodes. */
  endpoint: () => TunnelEndpoint | undefined
}

/** An empty address says that no process listens for nodes here. */
export function wellKnownOperations({ endpoint }: WellKnownDeps): Operation[] {
  return [
    operation(nodeEndpoints.wellKnown, () => ({
      ...(endpoint() ?? { endpoint: '', tlsFingerprint: null }),
      proto: 1 as const,
    })),
  ]
}
