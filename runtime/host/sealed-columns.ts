import { CONNECTOR_SEALED } from '../connectors/install.ts'
import { ROUND_SEALED } from '../connectors/oauth/rounds.ts'
import { MCP_GRANT_SEALED } from '../mcp-grants/grant.ts'
import { PROVIDER_SEALED } from '../providers/directory.ts'
import { RECEIPT_KEY_SEALED } from '../receipts/signing-keys.ts'
import { SECRET_SEALED } from '../secrets/store.ts'
import { CANARY_SEALED } from '../vault/canary.ts'
import { DATA_KEY_SEALED } from '../vault/data-keys.ts'
import type { SealedColumn } from '../vault/rotate.ts'
import { WEBHOOK_SEALED } from '../webhooks/webhook.ts'

/** Everything that is sealed under the master key. A feature that seals something adds its column here (a test looks). */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  CANARY_SEALED,
  DATA_KEY_SEALED,
  RECEIPT_KEY_SEALED,
  SECRET_SEALED,
  WEBHOOK_SEALED,
  CONNECTOR_SEALED,
  ROUND_SEALED,
  MCP_GRANT_SEALED,
  ...PROVIDER_SEALED,
]
