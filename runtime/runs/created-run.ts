import { readJson } from '../../shared/json/read-json.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { NewRun } from './store.ts'

/** A run that was just made, from what was stored: nothing of it is read again. What is executed elsewhere keeps its input there. */
export function newRun({ id, tenantId, agentName, agentId, ...run }: NewRun): Run {
  const createdAt = new Date(run.createdMs).toISOString()
  return {
    id,
    tenantId,
    agentName,
    agentId,
    agentVersionId: run.versionId,
    status: 'queued',
    createdAt,
    updatedAt: createdAt,
    ...(!run.elsewhere && { input: readJson(run.input) as Run['input'] }),
    tokensIn: 0,
    tokensOut: 0,
    costUsd: 0,
    treeCostUsd: 0,
    labels: readJson(run.labels) as Run['labels'],
    trigger: run.trigger,
    isolation: { declared: run.isolation as Run['isolation']['declared'] },
    ...(run.scheduleId !== undefined && { scheduleId: run.scheduleId }),
    ...(run.forkedFrom && { forkedFrom: run.forkedFrom }),
    budgetExceeded: run.budgetExceeded ?? false,
  }
}

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
