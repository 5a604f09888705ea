import type { Log } from '../../../shared/log/log.ts'
import type { AuditLog } from '../../audit-log/log.ts'
import type { Consent } from './consent.ts'

export interface OAuthDeps {
  consent: Consent
  audit: Pick<AuditLog, 'intend' | 'done'>
  log: Log
  /** Under which name browsers reach this; undefined: the one of each request. */
  publicUrl: string | undefined
  maxBodyBytes: number
}
