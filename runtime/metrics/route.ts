import { ApiError } from '../../shared/http/api-error.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import { equalSecrets } from '../../shared/sign/sha256.ts'
import { operationEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/operations.ts'
import { type Operation, operation } from '../http/operation.ts'

export interface MetricsDeps {
  metrics: Metrics
  access: MetricsAccess
  /** What is looked up when the page is asked for. */
  refresh?: () => Promise<void>
}

export function metricsOperations({ metrics, access, refresh }: MetricsDeps): Operation[] {
  return [
    operation(endpoints.metrics, async ({ context }) => {
      if (!access.open) admit(context.req.header('authorization'), access.token)
      await refresh?.()
      return context.body(metrics.text(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
    }),
  ]
}

function admit(authorization: string | undefined, token: string | undefined): void {
  const headers = { 'www-authenticate': 'Bearer' }
  if (token === undefined) {
    const message = 'metrics are closed on this address: set PLATFORM_METRICS_TOKEN and send it as a bearer token'
    throw new ApiError('unauthorized', message, { headers })
  }
  const given = /^Bearer (.+)$/i.exec(authorization ?? '')?.[1]
  if (given === undefined || !equalSecrets(given, token)) {
    throw new ApiError('unauthorized', 'send PLATFORM_METRICS_TOKEN as a bearer token', { headers })
  }
}

/** Who may read /metrics: a caller with the token; without a token every caller where only this machine can ask. */
export type MetricsAccess = { open: true } | { open: false; token: string | undefined }
