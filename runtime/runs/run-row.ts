import type { Row } from '@libsql/client/web'
import { readJson } from '../../shared/json/read-json.ts'
import { toUsd } from '../../shared/money/money.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { POISONED } from '../execution/claim-statement.ts'
import { openMaybe, type Records } from '../vault/records.ts'
import { VaultError } from '../vault/vault.ts'
import { TREE_NANO } from './run-tree.ts'

export const RUN_COLUMNS = `id, tenant_id, agent_name, agent_id, version_id, status, created_ms, updated_ms, started_ms,
  finished_ms, tokens_in, tokens_out, cost_nano, error_code, error_step, labels, trigger_kind, trigger_ref, parent_run_id,
  session_id, schedule_id, forked_run, forked_step, node_id, isolation, isolation_used, accel, model, budget_exceeded,
  cancel_reason, parked, parked_until_ms, uncertain_tokens, uncertain_nano,
  unpriced_calls, input_nano, cache_read_nano, cache_write_nano, output_nano, cache_read_tokens, cache_write_tokens,
  ${TREE_NANO}`

const time = (ms: unknown): string => new Date(Number(ms)).toISOString()
const given = <K extends string>(key: K, value: unknown) => (value === null ? {} : { [key]: String(value) })

export const DATA_COLUMNS = 'run_id, input, output, error_message'

interface RunData {
  input: string
  output: string | null
  errorMessage: string | null
}

/** What the node keeps of a run; `unreadable` where it was sealed under another key, or does not open. */
function readData(row: Row, records: Records): RunData | 'unreadable' {
  const record = String(row.run_id)
  try {
    return {
      input: records.open(String(row.input), { record, field: 'input' }),
      output: openMaybe(records, row.output, { record, field: 'output' }),
      errorMessage: openMaybe(records, row.error_message, { record, field: 'error' }),
    }
  } catch (error) {
    if (error instanceof VaultError) return 'unreadable'
    throw error
  }
}

/** What is said of its cost beside the sum; nothing where there is nothing to say. */
function spending(row: Row): Partial<Run> {
  const n = (column: string) => Number(row[column] ?? 0)
  const parts = [n('input_nano'), n('cache_read_nano'), n('cache_write_nano'), n('output_nano')]
  const [inputUsd = 0, cacheReadUsd = 0, cacheWriteUsd = 0, outputUsd = 0] = parts.map(toUsd)
  return {
    ...(n('uncertain_tokens') + n('uncertain_nano') > 0 && {
      uncertainTokens: n('uncertain_tokens'),
      uncertainCostUsd: toUsd(n('uncertain_nano')),
    }),
    ...(n('cache_read_tokens') > 0 && { cacheReadTokens: n('cache_read_tokens') }),
    ...(n('cache_write_tokens') > 0 && { cacheWriteTokens: n('cache_write_tokens') }),
    ...(parts.some(part => part > 0) && { costByClass: { inputUsd, cacheReadUsd, cacheWriteUsd, outputUsd } }),
    ...(n('unpriced_calls') > 0 && { unpricedCalls: n('unpriced_calls') }),
  }
}

/** A run as the wire shows it; `data` holds what belongs to the node, and is absent from summaries. */
export function toRun(row: Row, records?: Records, stored?: Row): Run {
  const read = records && stored && readData(stored, records)
  const data = read === 'unreadable' ? undefined : read
  return {
    id: String(row.id),
    tenantId: String(row.tenant_id),
    agentName: String(row.agent_name),
    agentId: String(row.agent_id),
    agentVersionId: String(row.version_id),
    status: String(row.status) as Run['status'],
    // Empty: dropped with the end of the run.
    ...(data && data.input !== '' && { input: readJson(data.input) as Run['input'] }),
    ...(data && data.output !== null && { output: readJson(data.output) as Run['output'] }),
    ...(read === 'unreadable' && { dataAvailable: false }),
    tokensIn: Number(row.tokens_in),
    tokensOut: Number(row.tokens_out),
    costUsd: toUsd(Number(row.cost_nano)),
    treeCostUsd: toUsd(Number(row.tree_nano ?? row.cost_nano)),
    ...spending(row),
    createdAt: time(row.created_ms),
    updatedAt: time(row.updated_ms),
    ...(row.started_ms !== null && { startedAt: time(row.started_ms) }),
    ...(row.finished_ms !== null && { finishedAt: time(row.finished_ms) }),
    ...(row.error_code !== null && {
      error: {
        code: String(row.error_code) as NonNullable<Run['error']>['code'],
        message: data?.errorMessage ?? String(row.error_code),
        ...given('stepId', row.error_step),
      },
    }),
    labels: readJson(String(row.labels)) as Run['labels'],
    trigger: { kind: String(row.trigger_kind) as Run['trigger']['kind'], ...given('ref', row.trigger_ref) },
    ...given('parentRunId', row.parent_run_id),
    ...given('sessionId', row.session_id),
    ...given('scheduleId', row.schedule_id),
    ...(row.forked_run !== null && {
      forkedFrom: { runId: String(row.forked_run), stepId: String(row.forked_step) },
    }),
    ...given('nodeId', row.node_id),
    isolation: {
      declared: String(row.isolation) as Run['isolation']['declared'],
      ...(row.isolation_used !== null && { used: String(row.isolation_used) as 'shared' }),
      ...given('accel', row.accel),
    },
    ...given('model', row.model),
    budgetExceeded: Number(row.budget_exceeded) !== 0,
    ...(row.parked !== null &&
      (row.status === 'running' || row.parked === POISONED) && {
        parked: {
          reason: String(row.parked) as 'timer',
          ...(row.parked_until_ms !== null && { until: time(row.parked_until_ms) }),
        },
      }),
    ...(row.cancel_reason !== null && { cancelReason: String(row.cancel_reason) }),
  }
}
