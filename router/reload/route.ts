import { ApiError } from '../../shared/http/api-error.ts'
import { routerOperationEndpoints as endpoints } from '../../shared/wire/router/endpoints/operations.ts'
import type { ReloadResult } from '../../shared/wire/router/health.ts'
import { ConfigError } from '../active-config.ts'
import { type Operation, operation } from '../http/operation.ts'

export interface ReloadDeps {
  /** Reads the config from where it came; throws ConfigError and keeps the old one when it cannot be used. */
  reload: () => Promise<ReloadResult>
}

export function reloadOperations({ reload }: ReloadDeps): Operation[] {
  return [
    operation(endpoints.reload, async () => {
      try {
        return await reload()
      } catch (cause) {
        if (cause instanceof ConfigError) throw new ApiError('bad_request', cause.message, { cause })
        throw cause
      }
    }),
  ]
}
