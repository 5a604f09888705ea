import { Hono } from 'hono'
import { announcedBodyLimit } from '../shared/http/body-limit.ts'
import { openapiPage } from '../shared/http/openapi-page.ts'
import { requestId } from '../shared/http/request-id.ts'
import { timing } from '../shared/http/timing.ts'
import type { Log } from '../shared/log/log.ts'
import type { Histogram } from '../shared/metrics/metrics.ts'
import { answerErrors, answerUnknownRoute } from './errors.ts'
import { type HealthDeps, healthRoute } from './health/route.ts'
import { type MetricsDeps, metricsRoute } from './metrics/route.ts'

export interface AppDeps extends HealthDeps, MetricsDeps {
  log: Log
  maxBodyBytes: number
  requestSeconds: Histogram
  monotonic: () => number
}

/** The HTTP surface of the runtime; every feature is mounted here and nowhere else. */
export function runtimeApp(deps: AppDeps) {
  const app = new Hono()
  app.use(requestId(), timing(deps.requestSeconds, deps.monotonic), announcedBodyLimit(deps.maxBodyBytes))
  app.route('/', healthRoute(deps))
  app.route('/', metricsRoute(deps))
  app.route(
    '/',
    openapiPage(async () => (await import('./served.ts')).servedDocument()),
  )
  app.notFound(answerUnknownRoute)
  app.onError(answerErrors(deps.log))
  return app
}
