import { VERSION } from '../shared/version.ts'
import type { Endpoint } from '../shared/wire/endpoint.ts'
import { accessEndpoints } from '../shared/wire/runtime/endpoints/access.ts'
import { agentEndpoints } from '../shared/wire/runtime/endpoints/agents.ts'
import { approvalEndpoints } from '../shared/wire/runtime/endpoints/approvals.ts'
import { auditEndpoints } from '../shared/wire/runtime/endpoints/audit.ts'
import { budgetEndpoints } from '../shared/wire/runtime/endpoints/budgets.ts'
import { connectorEndpoints } from '../shared/wire/runtime/endpoints/connectors.ts'
import { nodeEndpoints } from '../shared/wire/runtime/endpoints/nodes.ts'
import { operationEndpoints, webhookEndpoints } from '../shared/wire/runtime/endpoints/operations.ts'
import { receiptEndpoints } from '../shared/wire/runtime/endpoints/receipts.ts'
import { runEndpoints } from '../shared/wire/runtime/endpoints/runs.ts'
import { scheduleEndpoints } from '../shared/wire/runtime/endpoints/schedules.ts'
import { sessionEndpoints } from '../shared/wire/runtime/endpoints/sessions.ts'
import { settingsEndpoints } from '../shared/wire/runtime/endpoints/settings.ts'
import { userEndpoints } from '../shared/wire/runtime/endpoints/users.ts'
import { errorBody } from '../shared/wire/runtime/error.ts'

/** The operations that this version mounts: the gate knows these and no other, and the document names them. */
export const SERVED: readonly Endpoint[] = [
  operationEndpoints.healthz,
  operationEndpoints.readyz,
  operationEndpoints.metrics,
  operationEndpoints.openapi,
  operationEndpoints.docs,
  operationEndpoints.mcp,
  ...Object.values(accessEndpoints),
  ...Object.values(userEndpoints),
  ...Object.values(agentEndpoints),
  ...Object.values(runEndpoints),
  ...Object.values(approvalEndpoints),
  ...Object.values(settingsEndpoints),
  ...Object.values(receiptEndpoints),
  ...Object.values(budgetEndpoints),
  ...Object.values(scheduleEndpoints),
  ...Object.values(webhookEndpoints),
  ...Object.values(auditEndpoints),
  ...Object.values(sessionEndpoints),
  ...Object.values(connectorEndpoints),
  ...Object.values(nodeEndpoints),
]

export async function servedDocument(): Promise<object> {
  const { openapi } = await import('../shared/wire/openapi.ts')
  return openapi({
    // The service of this document serves what it describes.
    servers: [{ url: '/' }],
    title: 'Waybill agent runtime',
    version: VERSION,
    description: 'Executes AI agents durably, within budgets, with receipts.',
    endpoints: SERVED,
    errorSchema: errorBody,
  })
}
