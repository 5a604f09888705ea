import type { Consent } from '../connectors/oauth/consent.ts'
import type { Discovery } from './discovery.ts'
import type { GrantService } from './service.ts'

export interface McpGrantsDeps {
  service: GrantService
  discovery: Discovery
  consent: Pick<Consent, 'beginMcp'>
  /** Under which name browsers reach this; undefined: the one of each request. */
  publicUrl: string | undefined
  maxBodyBytes: number
}
