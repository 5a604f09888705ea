import { Hono } from 'hono'
import { announcedBodyLimit } from '../shared/http/body-limit.ts'
import type { ChangeFeed } from '../shared/http/change-feed.ts'
import { openapiPage } from '../shared/http/openapi-page.ts'
import { mount } from '../shared/http/operation.ts'
import { requestId } from '../shared/http/request-id.ts'
import { wantsHtml } from '../shared/http/wants-html.ts'
import type { Log } from '../shared/log/log.ts'
import { type AuditDeps, auditOperations } from './audit/route.ts'
import { traceTail } from './audit/tail.ts'
import type { RouterHttpEnv } from './auth/access.ts'
import type { CallersDeps } from './auth/callers.ts'
import { guard } from './auth/guard.ts'
import { type CapabilitiesDeps, capabilitiesOperations } from './capabilities/route.ts'
import { answerErrors, answerUnknownRoute } from './errors.ts'
import { type FeedbackDeps, feedbackOperations } from './feedback/route.ts'
import { MAX_REPORT_BYTES } from './feedback/submit-feedback.ts'
import { type HealthDeps, healthOperations } from './health/route.ts'
import { type MetricsDeps, metricsOperations } from './metrics/route.ts'
import { panelRoute } from './panel/route.ts'
import { type ReloadDeps, reloadOperations } from './reload/route.ts'

export interface AppDeps extends HealthDeps, MetricsDeps, ReloadDeps {
  log: Log
  guard: CallersDeps
  audit: AuditDeps
  capabilities: CapabilitiesDeps
  feedback: FeedbackDeps
  maxBodyBytes: number
  outHeaders: boolean
  /** The dashboard of the runtime in the same process, for the panel. */
  dashboard: () => string | undefined
  /** Undefined where no traces are kept. */
  traceFeed: ChangeFeed | undefined
}

/** The router's own HTTP surface, beside the calls to providers; every feature is mounted here and nowhere else. */
export function routerApp(deps: AppDeps) {
  const app = new Hono<RouterHttpEnv>()
  // Before the key: a person who opens the address that a start prints is led to the panel, which asks for it.
  app.use('/', async (c, next) => (wantsHtml(c.req.raw) ? c.redirect('./panel', 303) : next()))
  app.use(requestId(), announcedBodyLimit(deps.maxBodyBytes), guard(deps.guard))
  const operations = [
    ...healthOperations(deps),
    ...metricsOperations(deps),
    ...auditOperations(deps.audit),
    ...capabilitiesOperations(deps.capabilities),
    ...feedbackOperations(deps.feedback),
    ...reloadOperations(deps),
  ]
  // Before the trace with an id, which would take it for one.
  app.route('/', traceTail(deps.traceFeed))
  mount(app, operations, { maxBodyBytes: MAX_REPORT_BYTES })
  app.route('/', panelRoute(deps.dashboard))
  app.route(
    '/',
    openapiPage(async () => (await import('./openapi-document.ts')).servedDocument()),
  )
  app.notFound(answerUnknownRoute(app, deps.outHeaders))
  app.onError(answerErrors(deps.log, deps.outHeaders))
  return app
}
