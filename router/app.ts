import { Hono } from 'hono'
import { ApiError } from '../shared/http/api-error.ts'
import { announcedBodyLimit } from '../shared/http/body-limit.ts'
import type { ChangeFeed } from '../shared/http/change-feed.ts'
import { openapiPage } from '../shared/http/openapi-page.ts'
import { mount } from '../shared/http/operation.ts'
import { requestId } from '../shared/http/request-id.ts'
import { wantsHtml } from '../shared/http/wants-html.ts'
import type { Log } from '../shared/log/log.ts'
import { VERSION } from '../shared/version.ts'
import { auditEndpoints } from '../shared/wire/router/endpoints/audit.ts'
import { routerOperationEndpoints as operations } from '../shared/wire/router/endpoints/operations.ts'
import type { ReloadResult, RouterHealth, RouterReadiness } from '../shared/wire/router/health.ts'
import { ConfigError } from './active-config.ts'
import { type AuditDeps, auditOperations } from './audit/route.ts'
import { traceTail } from './audit/tail.ts'
import type { RouterHttpEnv } from './auth/access.ts'
import type { CallersDeps } from './auth/callers.ts'
import { guard } from './auth/guard.ts'
import { type CapabilitiesDeps, capabilitiesOperations } from './capabilities/route.ts'
import { answerErrors, answerUnknownRoute } from './errors.ts'
import { MAX_REPORT_BYTES, type SubmitFeedback } from './feedback/submit-feedback.ts'
import { type Operation, operation } from './http/operation.ts'
import { panelRoute } from './panel/route.ts'

export interface AppDeps {
  log: Log
  phase: () => RouterHealth['status']
  readiness: () => Promise<RouterReadiness>
  metrics: { text(): Promise<string> }
  /** Reads the config from where it came; throws ConfigError and keeps the old one when it cannot be used. */
  reload: () => Promise<ReloadResult>
  guard: CallersDeps
  audit: AuditDeps
  capabilities: CapabilitiesDeps
  /** Takes a report; undefined where no traces are kept. */
  submit: SubmitFeedback | undefined
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
  // Before the trace with an id, which would take it for one.
  app.route('/', traceTail(deps.traceFeed))
  mount(app, [...ownOperations(deps), ...auditOperations(deps.audit), ...capabilitiesOperations(deps.capabilities)], {
    maxBodyBytes: MAX_REPORT_BYTES,
  })
  app.route('/', panelRoute(deps.dashboard))
  app.route(
    '/',
    openapiPage(async () => (await import('./openapi-document.ts')).servedDocument()),
  )
  app.notFound(answerUnknownRoute(app, deps.outHeaders))
  app.onError(answerErrors(deps.log, deps.outHeaders))
  return app
}

/** What the router says of itself, and the reports that it takes. */
function ownOperations({ phase, readiness, metrics, submit, reload }: AppDeps): Operation[] {
  return [
    operation(operations.healthz, ({ context }) => {
      const health: RouterHealth = { status: phase(), service: 'router', version: VERSION }
      return context.json(health, health.status === 'ok' ? 200 : 503)
    }),
    operation(operations.readyz, async ({ context }) => {
      const now = await readiness()
      return context.json(now, now.status === 'ready' ? 200 : 503)
    }),
    operation(operations.metrics, async ({ context }) =>
      context.body(await metrics.text(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }),
    ),
    // A caller reports on its own tenant's traces; another tenant's id is not there.
    operation(auditEndpoints.feedback, ({ body, context }) => {
      if (submit === undefined) {
        throw new ApiError('not_found', 'this router keeps no traces: it was started without a store')
      }
      return submit(body, context.get('caller').sees)
    }),
    operation(operations.reload, async () => {
      try {
        return await reload()
      } catch (cause) {
        if (cause instanceof ConfigError) throw new ApiError('bad_request', cause.message, { cause })
        throw cause
      }
    }),
  ]
}
