import type { KeyAccess } from '../auth/keys/key-access.ts'
import type { ReceiptService } from './service.ts'

export interface ReceiptsDeps {
  service: ReceiptService
  keyAccess: Pick<KeyAccess, 'principalOf'>
  maxBodyBytes: number
}
