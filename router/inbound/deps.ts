import type { ActiveConfig } from '../active-config.ts'
import type { EnforceDeps } from '../enforce/handle.ts'
import type { RelayDeps } from '../observe/relay.ts'

export interface InboundDeps extends RelayDeps {
  tenantId: string
  /** Whether answers carry our own headers. */
  outHeaders: boolean
  active: () => ActiveConfig
  enforcing: (active: ActiveConfig) => EnforceDeps
}
