import { Hono } from 'hono'
import { announcedBodyLimit } from '../shared/http/body-limit.ts'
import { openapiPage } from '../shared/http/openapi-page.ts'
import { type RequestIdEnv, requestId } from '../shared/http/request-id.ts'
import type { Log } from '../shared/log/log.ts'
import type { Metrics } from '../shared/metrics/metrics.ts'
import { answerErrors, answerUnknownRoute } from './errors.ts'
import { type HealthDeps, healthRoute } from './health/route.ts'
import type { InboundDeps } from './inbound/deps.ts'
import { inboundRoute } from './inbound/route.ts'
import { metricsRoute } from './metrics/route.ts'

export interface AppDeps extends HealthDeps {
  log: Log
  metrics: Metrics
  inbound: InboundDeps
}

/** The HTTP surface of the router; every feature is mounted here and nowhere else. */
export function routerApp(deps: AppDeps) {
  const app = new Hono<RequestIdEnv>()
  app.use(requestId(), announcedBodyLimit(deps.inbound.maxBodyBytes))
  app.route('/', healthRoute(deps))
  app.route('/', metricsRoute(deps))
  app.route(
    '/',
    openapiPage(async () => (await import('./served.ts')).servedDocument()),
  )
  app.use(inboundRoute(deps.inbound))
  app.notFound(answerUnknownRoute(app))
  app.onError(answerErrors(deps.log))
  return app
}
