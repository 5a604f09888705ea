import { Hono } from 'hono'
import { announcedBodyLimit } from '../shared/http/body-limit.ts'
import { openapiPage } from '../shared/http/openapi-page.ts'
import { requestId } from '../shared/http/request-id.ts'
import type { Log } from '../shared/log/log.ts'
import { type AuditDeps, auditRoute } from './audit/route.ts'
import type { RouterHttpEnv } from './auth/access.ts'
import { type GuardDeps, guard } from './auth/guard.ts'
import { type CapabilitiesDeps, capabilitiesRoute } from './capabilities/route.ts'
import { answerErrors, answerUnknownRoute } from './errors.ts'
import { type FeedbackDeps, feedbackRoute } from './feedback/route.ts'
import { type HealthDeps, healthRoute } from './health/route.ts'
import type { InboundDeps } from './inbound/deps.ts'
import { inboundRoute } from './inbound/route.ts'
import { type MetricsDeps, metricsRoute } from './metrics/route.ts'
import { panelRoute } from './panel/route.ts'
import { type ReloadDeps, reloadRoute } from './reload/route.ts'

export interface AppDeps extends HealthDeps, MetricsDeps, ReloadDeps {
  log: Log
  guard: GuardDeps
  audit: AuditDeps
  capabilities: CapabilitiesDeps
  feedback: FeedbackDeps
  inbound: InboundDeps
}

/** The HTTP surface of the router; every feature is mounted here and nowhere else. */
export function routerApp(deps: AppDeps) {
  const app = new Hono<RouterHttpEnv>()
  app.use(requestId(), announcedBodyLimit(deps.inbound.maxBodyBytes), guard(deps.guard))
  app.route('/', healthRoute(deps))
  app.route('/', metricsRoute(deps))
  app.route('/', auditRoute(deps.audit))
  app.route('/', capabilitiesRoute(deps.capabilities))
  app.route('/', feedbackRoute(deps.feedback))
  app.route('/', reloadRoute(deps))
  app.route('/', panelRoute())
  app.route(
    '/',
    openapiPage(async () => (await import('./openapi-document.ts')).servedDocument()),
  )
  app.use(inboundRoute(deps.inbound))
  app.notFound(answerUnknownRoute(app, deps.inbound.outHeaders))
  app.onError(answerErrors(deps.log, deps.inbound.outHeaders))
  return app
}
