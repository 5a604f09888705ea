import { listIn, objectIn, type RowOf, readRow, textIn } from '../../shared/sql/db.ts'
import { type AnyConnectorId, isAnyConnector } from '../../shared/wire/runtime/catalog.ts'
import type { Connector as OnWire } from '../../shared/wire/runtime/connector.ts'
import type { connectors } from '../schema/tables.ts'
import type { SealedColumn } from '../vault/rotate.ts'
import type { VaultAad } from '../vault/vault.ts'
import type { AuthMethod, Connector, Credential } from './definition.ts'

/** A connector that a tenant has installed, without its secrets. */
export interface Install {
  tenantId: string
  connectorId: AnyConnectorId
  id: string
  displayName: string
  method: AuthMethod
  status: 'installed' | 'expired'
  /** Secrets are masked. */
  config: Readonly<Record<string, string>>
  /** Keys that it needs and does not have. */
  missing: readonly string[]
  sealed: string
  baseUrl: string | undefined
  expiresMs: number | undefined
  revision: number
  tested: { atMs: number; success: boolean } | undefined
  createdMs: number
  updatedMs: number
}

/** What stands before the path of every request. */
export function baseOf({ origin, prefix }: Connector, credential: Credential, baseUrl: string | undefined): string {
  return `${(baseUrl ?? origin(credential)).replace(/\/+$/, '')}${prefix?.(credential) ?? ''}`
}

/** Where its calls go, with the secrets in it masked. */
export function baseOfInstall(connector: Connector, { method, config, baseUrl }: Install): string {
  return baseOf(connector, { method, values: config }, baseUrl)
}

export function onWire(install: Install): OnWire {
  const { connectorId, status, id, displayName, method, baseUrl, tested, createdMs, updatedMs } = install
  const iso = (ms: number) => new Date(ms).toISOString()
  return {
    connectorId,
    status,
    installedAt: iso(createdMs),
    id,
    displayName,
    authMethod: method,
    ready: install.missing.length === 0,
    ...(baseUrl !== undefined && { baseUrl }),
    ...(tested && { lastTest: { at: iso(tested.atMs), success: tested.success } }),
    updatedAt: iso(updatedMs),
  }
}

/** Where the secrets of an install are sealed to. */
export function aadOf({ tenantId, connectorId }: { tenantId: string; connectorId: string }): VaultAad {
  return { tenantId, recordId: `connector/${connectorId}`, field: 'secrets' }
}

export const CONNECTOR_SEALED: SealedColumn = {
  table: 'connectors',
  column: 'sealed',
  key: ['tenant_id', 'connector_id'],
  aadOf: ({ tenant_id, connector_id }) => aadOf({ tenantId: String(tenant_id), connectorId: String(connector_id) }),
}

/** Undefined for a connector that this version does not know, such as after a step back to an older one. */
export function toInstall(row: RowOf<typeof connectors>): Install | undefined {
  return readRow(`connector ${row.connector_id}`, row, () => {
    const connectorId = row.connector_id
    if (!isAnyConnector(connectorId)) return undefined
    return {
      tenantId: row.tenant_id,
      connectorId,
      id: row.id,
      sealed: row.sealed,
      displayName: textIn(row.display_name),
      method: row.auth_method,
      status: row.status,
      missing: listIn<string>(row.missing),
      config: objectIn<Record<string, string>>(row.config),
      baseUrl: row.base_url === null ? undefined : textIn(row.base_url),
      expiresMs: row.expires_ms ?? undefined,
      revision: row.revision,
      tested: row.tested_ms === null ? undefined : { atMs: row.tested_ms, success: row.tested_ok === 1 },
      createdMs: row.created_ms,
      updatedMs: row.updated_ms,
    }
  })
}
