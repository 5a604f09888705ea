import { type EgressClient, NO_EGRESS } from '../../shared/http/outbound/egress-client.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { sleep } from '../../shared/time/sleep.ts'
import type { ConnectorId } from '../../shared/wire/runtime/catalog.ts'
import type { AuditLog } from '../audit-log/log.ts'
import { discovery } from '../mcp-grants/discovery.ts'
import type { McpGrantsDeps } from '../mcp-grants/route.ts'
import { grantService } from '../mcp-grants/service.ts'
import { grantStore } from '../mcp-grants/store.ts'
import type { Sealing } from '../vault/vault.ts'
import { vendorCalls } from './call.ts'
import type { OAuthClients } from './oauth/clients.ts'
import { consent } from './oauth/consent.ts'
import { roundStore } from './oauth/rounds.ts'
import type { OAuthDeps } from './oauth/route.ts'
import { tokenCalls } from './oauth/token-calls.ts'
import type { OtherHome } from './oauth/vendors.ts'
import type { ConnectorsDeps } from './route.ts'
import { connectorService } from './service.ts'
import { connectorStore } from './store.ts'

export interface ConnectingOptions {
  db: Db
  log: Log
  clock: Clock
  newId: () => string
  sealing: Sealing
  /** Without a way out, connectors can be installed and not called. */
  egress?: EgressClient | undefined
  /** What this installation is called at vendors, for OAuth. */
  oauthClients?: OAuthClients | undefined
  /** Vendors that are somewhere else than their own address. */
  oauthHomes?: Readonly<Partial<Record<ConnectorId, OtherHome>>> | undefined
  audit: Pick<AuditLog, 'intend' | 'done'>
  publicUrl: string | undefined
}

/** What keeps a tenant from being deleted. */
export const CONNECTOR_HOLDINGS = [
  { what: 'connectors', rows: 'select 1 from connectors where tenant_id = ?1' },
  { what: 'grants of MCP servers', rows: 'select 1 from mcp_grants where tenant_id = ?1' },
]

/** Connectors, put together. */
export function assembleConnectors(
  options: ConnectingOptions,
): ConnectorsDeps & { oauth: OAuthDeps; mcpGrants: McpGrantsDeps } {
  const { db, log, clock, newId, sealing } = options
  const { fetch, problem } = options.egress ?? NO_EGRESS
  const { oauthClients: clients = new Map(), oauthHomes: homes = {}, audit, publicUrl } = options
  const tokens = tokenCalls({ fetch })
  const service = connectorService({
    store: connectorStore(db),
    sealing,
    clock,
    newId,
    egress: { problem },
    redact: log.redact.opened,
    calls: vendorCalls({ fetch, clock, wait: sleep }),
    tokens,
    clients,
    homes,
    wait: sleep,
    log: log.target('runtime.connectors'),
  })
  const grants = grantService({
    store: grantStore(db),
    calls: tokens,
    sealing,
    clock,
    newId,
    wait: sleep,
    redact: log.redact.opened,
    log: log.target('runtime.mcp'),
  })
  const round = consent({
    rounds: roundStore(db),
    calls: tokens,
    clients,
    homes,
    sealing,
    clock,
    fetch,
    installGranted: service.installGranted,
    keepGrant: grants.keep,
  })
  const oauth = { consent: round, audit, publicUrl, log: log.target('runtime.connectors') }
  const mcpGrants = {
    service: grants,
    discovery: discovery({ fetch, problem }),
    consent: round,
    publicUrl,
  }
  return { service, oauth, mcpGrants }
}
