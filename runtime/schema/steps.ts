import type { Migration } from '../../shared/sql/migrate.ts'
import { accessStep } from './access-step.ts'
import { auditStep } from './audit-step.ts'
import { connectorsStep } from './connectors-step.ts'
import { dashboardStep } from './dashboard-step.ts'
import { executionStep } from './execution-step.ts'
import { fairShareStep } from './fair-share-step.ts'
import { governanceStep } from './governance-step.ts'
import { keyLeasesStep } from './key-leases-step.ts'
import { mcpStep } from './mcp-step.ts'
import { nodesStep } from './nodes-step.ts'
import { ownApisStep } from './own-apis-step.ts'
import { peersStep } from './peers-step.ts'
import { peopleStep } from './people-step.ts'
import { pinnedStep } from './pinned-step.ts'
import { remoteTurnsStep } from './remote-turns-step.ts'
import { retentionStep } from './retention-step.ts'
import { schedulesStep } from './schedules-step.ts'
import { sealedSchedulesStep } from './sealed-schedules-step.ts'
import { sealingStep } from './sealing-step.ts'
import { secretBindingsStep } from './secret-bindings-step.ts'
import { sessionsStep } from './sessions-step.ts'
import { settingsStep } from './settings-step.ts'
import { sharedPoolStep } from './shared-pool-step.ts'
import { spendingStep } from './spending-step.ts'
import { usersStep } from './users-step.ts'
import { webhooksStep } from './webhooks-step.ts'

/** The runtime's tables, step by step. A released step is never edited: add one. */
export const runtimeSteps: readonly Migration[] = [
  {
    id: 1,
    name: 'meta',
    sql: `create table runtime_meta (
  key text primary key,
  value text not null
) strict;`,
  },
  accessStep,
  executionStep,
  settingsStep,
  governanceStep,
  schedulesStep,
  webhooksStep,
  auditStep,
  sessionsStep,
  connectorsStep,
  sealingStep,
  mcpStep,
  nodesStep,
  dashboardStep,
  ownApisStep,
  usersStep,
  pinnedStep,
  remoteTurnsStep,
  sharedPoolStep,
  peersStep,
  keyLeasesStep,
  retentionStep,
  spendingStep,
  sealedSchedulesStep,
  fairShareStep,
  secretBindingsStep,
  peopleStep,
]
