import { Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import type { ReloadResult } from '../../shared/wire/router/health.ts'
import { ConfigError } from '../active-config.ts'

export interface ReloadDeps {
  /** Reads the config from where it came; throws ConfigError and keeps the old one when it cannot be used. */
  reload: () => Promise<ReloadResult>
}

export function reloadRoute({ reload }: ReloadDeps) {
  return new Hono().post('/-/reload', async c => {
    try {
      return c.json(await reload())
    } catch (cause) {
      if (cause instanceof ConfigError) throw new ApiError('bad_request', cause.message, { cause })
      throw cause
    }
  })
}
