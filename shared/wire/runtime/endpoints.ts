import type { Endpoint } from '../endpoint.ts'
import { accessEndpoints } from './endpoints/access.ts'
import { agentEndpoints } from './endpoints/agents.ts'
import { approvalEndpoints } from './endpoints/approvals.ts'
import { auditEndpoints } from './endpoints/audit.ts'
import { budgetEndpoints } from './endpoints/budgets.ts'
import { connectorEndpoints } from './endpoints/connectors.ts'
import { nodeEndpoints } from './endpoints/nodes.ts'
import { operationEndpoints, webhookEndpoints } from './endpoints/operations.ts'
import { overviewEndpoints } from './endpoints/overview.ts'
import { receiptEndpoints } from './endpoints/receipts.ts'
import { runEndpoints } from './endpoints/runs.ts'
import { scheduleEndpoints } from './endpoints/schedules.ts'
import { sessionEndpoints } from './endpoints/sessions.ts'
import { settingsEndpoints } from './endpoints/settings.ts'
import { userEndpoints } from './endpoints/users.ts'

/** The runtime service by resource; a typed client takes its arguments and answers from here. */
export const runtime = {
  agents: agentEndpoints,
  runs: runEndpoints,
  approvals: approvalEndpoints,
  receipts: receiptEndpoints,
  sessions: sessionEndpoints,
  connectors: connectorEndpoints,
  schedules: scheduleEndpoints,
  settings: settingsEndpoints,
  budgets: budgetEndpoints,
  overview: overviewEndpoints,
  access: accessEndpoints,
  users: userEndpoints,
  nodes: nodeEndpoints,
  webhooks: webhookEndpoints,
  audit: auditEndpoints,
  operations: operationEndpoints,
} as const

export const runtimeEndpoints: readonly Endpoint[] = Object.values(runtime).flatMap((group): Endpoint[] =>
  Object.values(group),
)
