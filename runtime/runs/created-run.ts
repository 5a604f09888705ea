import type { Run } from '../../shared/wire/runtime/run.ts'

/** A run as it was the moment it was made: it may be claimed before its creator hears of it. */
export function createdRun(run: Run): Run {
  const { id, tenantId, agentName, agentId, agentVersionId, input, createdAt, labels, trigger } = run
  const { forkedFrom, scheduleId } = run
  return {
    id,
    tenantId,
    agentName,
    agentId,
    agentVersionId,
    status: 'queued',
    createdAt,
    updatedAt: createdAt,
    ...(input && { input }),
    tokensIn: 0,
    tokensOut: 0,
    costUsd: 0,
    treeCostUsd: 0,
    labels,
    trigger,
    isolation: { declared: run.isolation.declared },
    ...(scheduleId !== undefined && { scheduleId }),
    ...(forkedFrom && { forkedFrom }),
    budgetExceeded: run.budgetExceeded,
  }
}
