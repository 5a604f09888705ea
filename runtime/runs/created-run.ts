import { invalidMember } from '../../shared/http/api-error.ts'
import { readJson } from '../../shared/json/read-json.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { schemaCheckOrRefusal } from '../json-schema/schema-check.ts'
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

/** Holds what a caller gives a run against the schema of the version, before anything is stored. */
export function refuseUnfitInput(
  inputSchema: NonNullable<Manifest['inputSchema']>,
  input: Readonly<Record<string, unknown>>,
): void {
  const fault = schemaCheckOrRefusal(inputSchema)(input)
  if (!fault) return
  const path = dottedPath(fault.at)
  throw invalidMember(path, fault.message)
}

/** A JSON pointer as the place in the body that every other refusal names. */
function dottedPath(pointer: string): string {
  const names = pointer.split('/').slice(1)
  return ['input', ...names.map(name => name.replaceAll('~1', '/').replaceAll('~0', '~'))].join('.')
}
