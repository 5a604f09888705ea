import type { ActiveConfig } from '../active-config.ts'
import type { EnforceDeps } from '../enforce/enforce.ts'
import type { RelayDeps } from '../observe/relay.ts'

export interface InboundDeps extends RelayDeps {
  tenantId: string
  /** Whether answers carry our own headers. */
  outHeaders: boolean
  /** Cuts the connection of a request, where the host can. */
  cut: ((request: Request) => void) | undefined
  active: () => ActiveConfig
  enforcing: (active: ActiveConfig) => EnforceDeps
}
