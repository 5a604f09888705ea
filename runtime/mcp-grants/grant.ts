import { type RowOf, readRow, textIn } from '../../shared/sql/db.ts'
import type { McpGrant } from '../../shared/wire/runtime/mcp-grant.ts'
import type { mcpGrants } from '../schema/tables.ts'
import type { SealedColumn } from '../vault/rotate.ts'
import type { VaultAad } from '../vault/vault.ts'

/** What the authorization server of an MCP server has granted to a tenant; its tokens are sealed. */
export interface Grant {
  tenantId: string
  /** The address of the MCP server. */
  resource: string
  id: string
  issuer: string
  scope: string | undefined
  status: 'installed' | 'expired'
  sealed: string
  expiresMs: number | undefined
  revision: number
  createdMs: number
  updatedMs: number
}

export function toGrant(row: RowOf<typeof mcpGrants>): Grant {
  return readRow(`grant ${row.id}`, row, () => ({
    tenantId: row.tenant_id,
    resource: row.resource,
    id: row.id,
    issuer: textIn(row.issuer),
    sealed: row.sealed,
    scope: row.scope === null ? undefined : textIn(row.scope),
    status: row.status,
    expiresMs: row.expires_ms ?? undefined,
    revision: row.revision,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
  }))
}

export function onWire({ id, resource, issuer, scope, status, expiresMs, createdMs, updatedMs }: Grant): McpGrant {
  const iso = (ms: number) => new Date(ms).toISOString()
  return {
    id,
    url: resource,
    issuer,
    status: status === 'installed' ? 'granted' : 'expired',
    ...(scope !== undefined && { scope }),
    ...(expiresMs !== undefined && { expiresAt: iso(expiresMs) }),
    createdAt: iso(createdMs),
    updatedAt: iso(updatedMs),
  }
}

export function aadOf({ tenantId, resource }: Pick<Grant, 'tenantId' | 'resource'>): VaultAad {
  return { tenantId, recordId: `mcp/${resource}`, field: 'tokens' }
}

export const MCP_GRANT_SEALED: SealedColumn = {
  table: 'mcp_grants',
  column: 'sealed',
  key: ['tenant_id', 'resource'],
  aadOf: ({ tenant_id, resource }) => aadOf({ tenantId: String(tenant_id), resource: String(resource) }),
}
