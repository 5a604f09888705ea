import { Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import { equalSecrets } from '../../shared/sign/equal.ts'
import type { MetricsAccess } from './access.ts'

export interface MetricsDeps {
  metrics: Metrics
  access: MetricsAccess
  /** What is looked up when the page is asked for. */
  refresh?: () => Promise<void>
}

export function metricsRoute({ metrics, access, refresh }: MetricsDeps) {
  return new Hono().get('/metrics', async c => {
    if (!access.open) admit(c.req.header('authorization'), access.token)
    await refresh?.()
    return c.body(metrics.text(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
  })
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
