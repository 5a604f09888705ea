import type { ExecutionDeps } from '../../assemble-execution.ts'
import type { Ledger } from '../../budgets/ledger.ts'
import type { Core } from '../../core.ts'
import type { runEvents } from '../../webhooks/run-events.ts'
import { type BudgetRequests, budgetRequests } from './budget-requests.ts'
import { grantedModel } from './granted-model.ts'
import { asideNews, reportRows } from './report-rows.ts'
import { requestSubagents } from './request-subagent.ts'
import { takeOverRuns } from './take-over-runs.ts'
import type { WorkerIdentity } from './worker.ts'

export interface WorkerExecutionDeps {
  ledger: Ledger
  runEvents: ReturnType<typeof runEvents>
}

export interface WorkerExecution
  extends Pick<
    ExecutionDeps,
    'ledger' | 'extraStatements' | 'kept' | 'extraWhenSetAside' | 'takenHere' | 'childrenOf'
  > {
  /** Its questions whether a call may be made; undefined where this process is no node. */
  asks?: BudgetRequests
}

/** What a node does otherwise than a control plane when it executes runs: it reports them, asks for budget, and hands children up. */
export function workerExecution(
  { db, sha256 }: Pick<Core, 'db' | 'sha256'>,
  worker: WorkerIdentity | undefined,
  { ledger, runEvents }: WorkerExecutionDeps,
): WorkerExecution {
  if (!worker) return { ledger, ...runEvents }
  const asks = budgetRequests()
  const reports = reportRows(worker.reportsAs)
  const reportAside = asideNews(worker.reportsAs)
  const others = worker.reportsAs ? takeOverRuns(worker.reportsAs, db) : undefined
  return {
    ...runEvents,
    asks,
    ledger: { ...ledger, within: (run, model) => grantedModel(db, asks, run, ledger.within(run, model)) },
    extraStatements: units => [...runEvents.extraStatements(units), ...reports(units)],
    kept: worker.reportSoon,
    extraWhenSetAside: ids => [...(others?.aside(ids) ?? []), reportAside(ids)],
    ...(others && { takenHere: others.claimed }),
    childrenOf: runs => requestSubagents(worker, { db, runs, sha256 }),
  }
}
