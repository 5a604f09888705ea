import { type Db, type RowOf, rowsOf } from '../../../shared/sql/db.ts'
import type { ConnectorId } from '../../../shared/wire/runtime/catalog.ts'
import { isConnector } from '../../../shared/wire/runtime/catalog.ts'
import type { oauthRounds } from '../../schema/tables.ts'
import type { SealedColumn } from '../../vault/rotate.ts'
import type { VaultAad } from '../../vault/vault.ts'

/** In the place of a connector: the round is for an MCP server, which its sealed text names. */
export const MCP = 'mcp'

/** A way to a vendor's consent page and back. */
export interface Round {
  stateHash: string
  tenantId: string
  connectorId: ConnectorId | typeof MCP
  /** The id of the key or of the person who began it. */
  starter: string
  sealed: string
  expiresMs: number
}

export type RoundStore = ReturnType<typeof roundStore>

export function roundStore(db: Db) {
  return {
    async begin({ stateHash, tenantId, connectorId, starter, sealed, expiresMs }: Round, nowMs: number): Promise<void> {
      await db.write([
        { sql: 'delete from oauth_rounds where expires_ms <= ?', args: [nowMs] },
        {
          sql: `insert into oauth_rounds (state_hash, tenant_id, connector_id, starter, sealed, expires_ms)
values (?, ?, ?, ?, ?, ?)`,
          args: [stateHash, tenantId, connectorId, starter, sealed, expiresMs],
        },
      ])
    },

    /** Ends a round: of two that come with one state, one gets it. */
    async end(stateHash: string): Promise<Round | undefined> {
      const sql = 'delete from oauth_rounds where state_hash = ? returning *'
      const [row] = rowsOf<RowOf<typeof oauthRounds>>(await db.execute({ sql, args: [stateHash] }))
      if (!row) return undefined
      const connectorId = row.connector_id
      if (!isConnector(connectorId) && connectorId !== MCP) return undefined
      return {
        stateHash,
        connectorId,
        tenantId: row.tenant_id,
        starter: row.starter,
        sealed: row.sealed,
        expiresMs: row.expires_ms,
      }
    },
  }
}

/** Where what a round keeps is sealed to. */
export function aadOf(tenantId: string, stateHash: string): VaultAad {
  return { tenantId, recordId: `oauth/${stateHash}`, field: 'round' }
}

export const ROUND_SEALED: SealedColumn = {
  table: 'oauth_rounds',
  column: 'sealed',
  key: ['tenant_id', 'state_hash'],
  aadOf: ({ tenant_id, state_hash }) => aadOf(String(tenant_id), String(state_hash)),
}
