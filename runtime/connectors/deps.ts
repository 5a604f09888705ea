import type { Idempotent } from '../http/idempotent.ts'
import type { ConnectorService } from './service.ts'

export interface ConnectorsDeps {
  service: ConnectorService
  idempotent: Idempotent
  maxBodyBytes: number
}
