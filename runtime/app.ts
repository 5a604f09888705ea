import { Hono, type MiddlewareHandler } from 'hono'
import { ApiError } from '../shared/http/api-error.ts'
import { announcedBodyLimit } from '../shared/http/body-limit.ts'
import { docsPage } from '../shared/http/docs-page.ts'
import { openapiPage } from '../shared/http/openapi-page.ts'
import { requestId } from '../shared/http/request-id.ts'
import { timing } from '../shared/http/timing.ts'
import type { Log } from '../shared/log/log.ts'
import type { Histogram } from '../shared/metrics/metrics.ts'
import { type AgentsDeps, agentsRoute } from './agents/route.ts'
import { type ApprovalsDeps, approvalsRoute } from './approvals/route.ts'
import { audited, auditedSetup } from './audit-log/audited.ts'
import type { AuditLog } from './audit-log/log.ts'
import { auditRoute } from './audit-log/route.ts'
import { type DashboardDeps, dashboardRoute } from './auth/dashboard/route.ts'
import type { Gates } from './auth/gate.ts'
import { type KeysDeps, keysRoute } from './auth/keys/route.ts'
import type { BudgetsDeps } from './budgets/deps.ts'
import { budgetsRoute } from './budgets/route.ts'
import type { ConnectorsDeps } from './connectors/deps.ts'
import type { OAuthDeps } from './connectors/oauth/deps.ts'
import { oauthCallbackRoute, oauthStartRoute } from './connectors/oauth/route.ts'
import { connectorsRoute } from './connectors/route.ts'
import { cors } from './cors.ts'
import type { PagesDeps } from './dashboard/deps.ts'
import { pagesRoute } from './dashboard/route.ts'
import { answerErrors, answerUnknownRoute, stopping } from './errors.ts'
import { type HealthDeps, healthRoute } from './health/route.ts'
import type { RuntimeHttpEnv } from './http/http-env.ts'
import { knownQuery } from './http/known-query.ts'
import { DASHBOARD_API } from './http/path-of.ts'
import { mcpRoute } from './mcp/route.ts'
import type { McpGrantsDeps } from './mcp-grants/deps.ts'
import { mcpGrantsRoute } from './mcp-grants/route.ts'
import { type MetricsDeps, metricsRoute } from './metrics/route.ts'
import type { NodesDeps } from './nodes/deps.ts'
import { platformNodesRoute } from './nodes/gateway/well-known-route.ts'
import { type PeerRouteDeps, peerRoute } from './nodes/peers/peer-route.ts'
import { nodesRoute } from './nodes/route.ts'
import { servedDocument } from './openapi-document.ts'
import type { ProvidersDeps } from './providers/deps.ts'
import { providersRoute } from './providers/route.ts'
import type { ReceiptsDeps } from './receipts/deps.ts'
import { publicReceiptsRoute, receiptsRoute } from './receipts/route.ts'
import { type JournalDeps, journalRoute } from './runs/journal-route.ts'
import { type RunsDeps, runsRoute } from './runs/route.ts'
import type { SchedulesDeps } from './schedules/deps.ts'
import { schedulesRoute } from './schedules/route.ts'
import { type SecretsRouteDeps, secretsRoute } from './secrets/route.ts'
import type { SessionsDeps } from './sessions/deps.ts'
import { sessionsRoute } from './sessions/route.ts'
import { type TenantsDeps, tenantsRoute } from './tenants/route.ts'
import { type UsersDeps, usersRoute } from './users/route.ts'
import type { WebhooksDeps } from './webhooks/deps.ts'
import { webhooksRoute } from './webhooks/route.ts'

export interface AppDeps extends HealthDeps, MetricsDeps {
  log: Log
  maxBodyBytes: number
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
  secrets: SecretsRouteDeps
  receipts: ReceiptsDeps
  budgets: BudgetsDeps
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

/** The HTTP surface of the runtime; every feature is mounted here and nowhere else. */
export function runtimeApp(deps: AppDeps) {
  const app = new Hono<RuntimeHttpEnv>()
  // Before the limit of a body: what one control plane asks another has a limit of its own.
  if (deps.peer) app.route('/', peerRoute(deps.peer))
  app.use(requestId(), timing(deps.requestSeconds, deps.monotonic), cors(deps.corsOrigins))
  app.use(announcedBodyLimit(deps.maxBodyBytes))
  app.route('/', healthRoute(deps))
  app.route('/', metricsRoute(deps))
  app.route('/', openapiPage(servedDocument))
  app.route('/', docsPage(servedDocument))
  app.route('/', pagesRoute({ ...deps.pages, fetch: async (request, connection) => app.fetch(request, connection) }))
  app.route('/', publicReceiptsRoute(deps.receipts))
  app.route('/', platformNodesRoute(deps.nodes))
  app.use('/auth/setup', auditedSetup(deps))
  app.route('/', oauthCallbackRoute(deps.connectors.oauth))
  app.route('/', dashboardRoute({ ...deps.dashboard, audit: deps.audit, log: deps.log }))
  const api = apiRoutes(deps)
  app.use('/v1/*', deps.gates.bearer, knownQuery, audited(deps))
  app.use(`${DASHBOARD_API}/v1/*`, deps.gates.cookie, knownQuery, audited(deps))
  app.post('/mcp', deps.gates.bearer)
  app.route('/', mcpRoute({ call: async request => app.fetch(request, {}), maxBodyBytes: deps.maxBodyBytes }))
  app.route('/', api)
  app.route(DASHBOARD_API, api)
  app.notFound(answerUnknownRoute)
  app.onError(answerErrors(deps.log))
  return app
}

/** Everything under `/v1/`: for programs behind a key, and for the dashboard once more behind its cookie. */
function apiRoutes(deps: AppDeps) {
  return new Hono<RuntimeHttpEnv>()
    .use(refuseWork(deps.draining))
    .use(refuseKept(deps.embedded))
    .route('/', keysRoute(deps.keys))
    .route('/', tenantsRoute(deps.tenants))
    .route('/', usersRoute(deps.users))
    .route('/', agentsRoute(deps.agents))
    .route('/', providersRoute(deps.providers))
    .route('/', secretsRoute(deps.secrets))
    .route('/', receiptsRoute(deps.receipts))
    .route('/', budgetsRoute(deps.budgets))
    .route('/', webhooksRoute(deps.webhooks))
    .route('/', auditRoute(deps))
    .route('/', nodesRoute(deps.nodes))
    .route('/', oauthStartRoute(deps.connectors.oauth))
    .route('/', connectorsRoute(deps.connectors))
    .route('/', mcpGrantsRoute(deps.connectors.mcpGrants))
    .route('/', runsRoute(deps.runs))
    .route('/', journalRoute(deps.journals))
    .route('/', approvalsRoute(deps.approvals))
    .route('/', schedulesRoute(deps.schedules))
    .route('/', sessionsRoute(deps.sessions))
}

const KEPT_BY_NODES = /\/v1\/(?:settings\/llm-providers|secrets\/[^/]+|connectors\/install)$/

/** Where only nodes execute, their keys are theirs: a key given here would be stored here and never used. */
function refuseKept(embedded: boolean): MiddlewareHandler {
  return async (c, next) => {
    if (!embedded && (c.req.method === 'POST' || c.req.method === 'PUT') && KEPT_BY_NODES.test(c.req.path)) {
      throw new ApiError(
        'validation_failed',
        'the embedded node is switched off, so what is given here would never be used: PUT /v1/pools/{pool}/credentials seals it to the nodes of a pool',
      )
    }
    await next()
  }
}

function refuseWork(draining: () => boolean): MiddlewareHandler {
  return async (c, next) => {
    if (c.req.method === 'POST' && draining()) throw stopping()
    await next()
  }
}
