import type { Idempotent } from '../idempotency/idempotent.ts'
import type { OAuthClients } from './oauth/clients.ts'
import type { ConnectorService } from './service.ts'

export interface ConnectorsDeps {
  service: ConnectorService
  /** What this installation is called at vendors. */
  clients: OAuthClients
  idempotent: Idempotent
  maxBodyBytes: number
}
