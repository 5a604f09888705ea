import type { Idempotent } from '../idempotency/idempotent.ts'
import type { ConnectorService } from './service.ts'

export interface ConnectorsDeps {
  service: ConnectorService
  idempotent: Idempotent
  maxBodyBytes: number
}
