import type { ProviderId } from '../../shared/wire/runtime/model-name.ts'

/** A provider with everything a call needs, secrets included: never kept, never logged, never answered. */
export interface Connection {
  provider: ProviderId
  baseUrl: string
  apiKey: string | undefined
  /** Sent with every call, after our own. */
  headers: Readonly<Record<string, string>>
}
