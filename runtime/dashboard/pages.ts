import type { Page } from './page.ts'
import { agentPage } from './pages/agent.ts'
import { agentsPage } from './pages/agents.ts'
import { approvalsPage } from './pages/approvals.ts'
import { comparePage } from './pages/compare.ts'
import { connectorsPage } from './pages/connectors.ts'
import { nodesPage } from './pages/nodes.ts'
import { overviewPage } from './pages/overview.ts'
import { runPage } from './pages/run.ts'
import { runsPage } from './pages/runs.ts'
import { schedulePage } from './pages/schedule.ts'
import { schedulesPage } from './pages/schedules.ts'
import { sessionPage } from './pages/session.ts'
import { sessionsPage } from './pages/sessions.ts'
import { settingsPage } from './pages/settings.ts'

export const pages: readonly Page[] = [
  overviewPage,
  runsPage,
  runPage,
  comparePage,
  approvalsPage,
  agentsPage,
  agentPage,
  sessionsPage,
  sessionPage,
  schedulesPage,
  schedulePage,
  connectorsPage,
  nodesPage,
  settingsPage,
]
