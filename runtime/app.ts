import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { createMiddleware } from 'hono/factory'
import { routePath } from 'hono/route'
import { ApiError } from '../shared/http/api-error.ts'
import { announcedBodyLimit, bodiesInTurn } from '../shared/http/body-limit.ts'
import { docsPage } from '../shared/http/docs-page.ts'
import { openapiPage } from '../shared/http/openapi-page.ts'
import { mount } from '../shared/http/operation.ts'
import { packedAnswers } from '../shared/http/packed-answers.ts'
import { requestId } from '../shared/http/request-id.ts'
import type { Log } from '../shared/log/log.ts'
import type { Histogram } from '../shared/metrics/metrics.ts'
import type { Endpoint } from '../shared/wire/endpoint.ts'
import { connectorEndpoints } from '../shared/wire/runtime/endpoints/connectors.ts'
import { settingsEndpoints } from '../shared/wire/runtime/endpoints/settings.ts'
import { type AgentsDeps, agentOperations } from './agents/route.ts'
import { type ApprovalsDeps, approvalOperations } from './approvals/route.ts'
import { audited, isAdministrative } from './audit-log/audited.ts'
import type { AuditLog } from './audit-log/log.ts'
import { auditOperations } from './audit-log/route.ts'
import type { DashboardDeps } from './auth/dashboard/deps.ts'
import { dashboardRoute } from './auth/dashboard/route.ts'
import { admit, type Gates } from './auth/gate.ts'
import { type KeysDeps, keyOperations } from './auth/keys/route.ts'
import { type BudgetsDeps, budgetOperations } from './budgets/route.ts'
import { type OAuthDeps, oauthCallbackRoute, oauthOperations } from './connectors/oauth/route.ts'
import { type ConnectorsDeps, connectorOperations } from './connectors/route.ts'
import type { PagesDeps } from './dashboard/deps.ts'
import { answerUnknownPage } from './dashboard/entry-pages.ts'
import { pagesRoute } from './dashboard/route.ts'
import { answerErrors, answerUnknownRoute, stopping } from './errors.ts'
import { type HealthDeps, healthOperations } from './health/route.ts'
import { DASHBOARD_API } from './http/addresses.ts'
import type { RuntimeHttpEnv } from './http/http-env.ts'
import type { Idempotent } from './http/idempotent.ts'
import type { Operation, OperationHost } from './http/operation.ts'
import { mcpRoute } from './mcp/route.ts'
import { type McpGrantsDeps, mcpGrantOperations } from './mcp-grants/route.ts'
import { type MetricsDeps, metricsOperations } from './metrics/route.ts'
import { wellKnownOperations } from './nodes/gateway/well-known-route.ts'
import { PEER_PATH, type PeerRouteDeps, peerRoute } from './nodes/peers/peer-route.ts'
import { type NodesDeps, nodeOperations } from './nodes/route.ts'
import { servedDocument } from './openapi-document.ts'
import { type OverviewDeps, overviewOperations } from './overview/route.ts'
import { type ProvidersDeps, providerOperations } from './providers/route.ts'
import { publicReceiptOperations, type ReceiptsDeps, receiptOperations } from './receipts/route.ts'
import { type JournalDeps, journalOperations } from './runs/journal-route.ts'
import { type RunsDeps, runOperations } from './runs/route.ts'
import { type SchedulesDeps, scheduleOperations } from './schedules/route.ts'
import { type SecretsDeps, secretOperations } from './secrets/route.ts'
import { type SessionsDeps, sessionOperations } from './sessions/route.ts'
import { type TenantsDeps, tenantOperations } from './tenants/route.ts'
import { type UsersDeps, userOperations } from './users/route.ts'
import { type WebhooksDeps, webhookOperations } from './webhooks/route.ts'

export interface AppDeps extends HealthDeps, MetricsDeps {
  log: Log
  maxBodyBytes: number
  bodyBytesAtATime: number
  idempotent: Idempotent
  /** Origins whose pages may call the API. */
  corsOrigins: readonly string[]
  requestSeconds: Histogram
  monotonic: () => number
  gates: Gates
  keys: KeysDeps
  tenants: TenantsDeps
  users: UsersDeps
  dashboard: Omit<DashboardDeps, 'audit' | 'log'>
  pages: PagesDeps
  agents: AgentsDeps
  runs: RunsDeps
  journals: JournalDeps
  approvals: ApprovalsDeps
  providers: ProvidersDeps
  secrets: SecretsDeps
  receipts: ReceiptsDeps
  budgets: BudgetsDeps
  overview: OverviewDeps
  schedules: SchedulesDeps
  webhooks: WebhooksDeps
  connectors: ConnectorsDeps & { oauth: OAuthDeps; mcpGrants: McpGrantsDeps }
  nodes: NodesDeps
  /** Undefined: no other control plane asks this one. */
  peer: PeerRouteDeps | undefined
  /** Whether runs are executed in this process. */
  embedded: boolean
  audit: AuditLog
  sessions: SessionsDeps
  /** True once the service is stopping: work that begins now would be cut off. */
  draining: () => boolean
}

/** The operations that need neither a key nor a login. */
function publicOperations(deps: AppDeps): Operation[] {
  return [
    ...healthOperations(deps),
    ...metricsOperations(deps),
    ...publicReceiptOperations(deps.receipts),
    ...wellKnownOperations(deps.nodes),
  ]
}

/** The operations of programs behind a key, and of the dashboard behind its cookie. */
function apiOperations(deps: AppDeps): Operation[] {
  return [
    ...keyOperations(deps.keys),
    ...tenantOperations(deps.tenants),
    ...userOperations(deps.users),
    ...agentOperations(deps.agents),
    ...providerOperations(deps.providers),
    ...secretOperations(deps.secrets),
    ...receiptOperations(deps.receipts),
    ...budgetOperations(deps.budgets),
    ...overviewOperations(deps.overview),
    ...webhookOperations(deps.webhooks),
    ...auditOperations(deps),
    ...nodeOperations(deps.nodes),
    ...oauthOperations(deps.connectors.oauth),
    ...connectorOperations(deps.connectors),
    ...mcpGrantOperations(deps.connectors.mcpGrants),
    ...runOperations(deps.runs),
    ...journalOperations(deps.journals),
    ...approvalOperations(deps.approvals),
    ...scheduleOperations(deps.schedules),
    ...sessionOperations(deps.sessions),
  ]
}

/** The HTTP surface of the runtime; every feature is mounted here and nowhere else. */
export function runtimeApp(deps: AppDeps) {
  const { gates, maxBodyBytes, idempotent } = deps
  const host: OperationHost = { maxBodyBytes, idempotent }
  const app = new Hono<RuntimeHttpEnv>()
  const inTurn = () => bodiesInTurn(deps.bodyBytesAtATime)
  // Before the limit of a body: what one control plane asks another has a limit of its own.
  if (deps.peer) app.use(PEER_PATH, inTurn()).route('/', peerRoute(deps.peer))
  app.use(requestId(), timing(deps.requestSeconds, deps.monotonic), cors(deps.corsOrigins))
  app.use(announcedBodyLimit(maxBodyBytes))
  // Callers without a key do not hold up those with one, nor a tenant another.
  const openBodies = inTurn()
  const tenantOf = (c: Context<RuntimeHttpEnv>) => c.get('principal').tenantId
  const bodies = bodiesInTurn(deps.bodyBytesAtATime, tenantOf)
  mount(app, publicOperations(deps), host, ({ body }) => (body ? [openBodies] : []))
  app.route('/', openapiPage(servedDocument))
  app.route('/', docsPage(servedDocument))
  app.route('/', pagesRoute({ ...deps.pages, fetch: async (request, connection) => app.fetch(request, connection) }))
  app.route('/', oauthCallbackRoute(deps.connectors.oauth))
  app.route('/', dashboardRoute({ ...deps.dashboard, audit: deps.audit, log: deps.log }, host))
  app.use('/v1/*', gates.bearer)
  if (deps.pages.gzip) app.use(`${DASHBOARD_API}/v1/*`, packedAnswers)
  app.use(`${DASHBOARD_API}/v1/*`, gates.cookie)
  app.post('/mcp', gates.bearer, bodies)
  const { publicUrl } = deps.pages
  const origins = [...deps.corsOrigins, ...(publicUrl === undefined ? [] : [new URL(publicUrl).origin])]
  app.route('/', mcpRoute({ call: async request => app.fetch(request, {}), maxBodyBytes, origins }))
  const api = mount(new Hono<RuntimeHttpEnv>(), apiOperations(deps), host, endpoint => [
    admit(endpoint),
    ...(endpoint.body ? [bodies] : []),
    damagedRows(deps.log),
    ...(isAdministrative(endpoint) ? [audited(deps, endpoint)] : []),
    refuseWork(deps, endpoint),
  ])
  app.route('/', api)
  app.route(DASHBOARD_API, api)
  app.notFound(answerUnknownPage(answerUnknownRoute))
  app.onError(answerErrors(deps.log))
  return app
}

/** What a host without an embedded node does not take: it would be stored here and never used. */
const OF_THE_EMBEDDED_NODE: ReadonlySet<string> = new Set([
  settingsEndpoints.saveProvider.id,
  settingsEndpoints.saveSecret.id,
  connectorEndpoints.install.id,
])

function refuseWork(
  { draining, embedded }: Pick<AppDeps, 'draining' | 'embedded'>,
  { id, method }: Endpoint,
): MiddlewareHandler {
  return async (_, next) => {
    if (method === 'POST' && draining()) throw stopping()
    if (!embedded && OF_THE_EMBEDDED_NODE.has(id)) {
      throw new ApiError(
        'validation_failed',
        'the embedded node is switched off, so what is given here would never be used: PUT /v1/pools/{pool}/credentials seals it to the nodes of a pool',
      )
    }
    await next()
  }
}

/** What a list leaves out is named in the log. */
function damagedRows(log: Log): MiddlewareHandler<RuntimeHttpEnv> {
  return async (c, next) => {
    await next()
    for (const error of c.get('damaged') ?? []) log.error('a list leaves out a row', { error, path: c.req.path })
  }
}

/** What programs call with a key. Pages and logins go by a cookie, which no other site may use. */
const OPEN = /^\/(?:v1\/|mcp$|receipts\/verify$|openapi\.json$|healthz$|readyz$)/

const REQUEST_HEADERS =
  'authorization, content-type, accept, idempotency-key, last-event-id, x-request-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name'
const ANSWER_HEADERS = 'x-request-id, link, idempotency-replayed, retry-after, www-authenticate, mcp-session-id'
const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const MAX_AGE_S = 600

/**
 * Lets pages of the origins in the list call the API from a browser. Each is compared whole; cookies are never allowed, so a key that the
 * page has is the only way in. A browser's preflight carries no key and is answered here.
 */
function cors(origins: readonly string[]): MiddlewareHandler {
  const allowed = new Set(origins)
  return async (c, next) => {
    if (allowed.size === 0 || !OPEN.test(c.req.path)) return next()
    const origin = c.req.header('origin')
    const known = origin !== undefined && allowed.has(origin)
    if (c.req.method === 'OPTIONS' && origin !== undefined && c.req.header('access-control-request-method')) {
      const headers = {
        'access-control-allow-origin': origin,
        'access-control-allow-methods': METHODS,
        'access-control-allow-headers': REQUEST_HEADERS,
        'access-control-max-age': String(MAX_AGE_S),
      }
      return c.body(null, 204, { vary: 'Origin', ...(known && headers) })
    }
    await next()
    c.header('vary', 'Origin', { append: true })
    if (!known) return
    c.header('access-control-allow-origin', origin)
    c.header('access-control-expose-headers', ANSWER_HEADERS)
  }
}

/** Records how long each request took under its route pattern, so that ids never become labels. */
function timing(seconds: Histogram, monotonic: () => number) {
  return createMiddleware(async (c, next) => {
    const start = monotonic()
    await next()
    const route = c.res.status === 404 || c.res.status === 405 ? 'none' : routePath(c, -1)
    seconds.observe((monotonic() - start) / 1000, { route, method: c.req.method, status: c.res.status })
  })
}
