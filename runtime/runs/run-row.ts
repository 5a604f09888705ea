import { readJson } from '../../shared/json/read-json.ts'
import { toUsd } from '../../shared/money/money.ts'
import { objectIn, type RowOf, readRow } from '../../shared/sql/db.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import { POISONED } from '../execution/claim-statement.ts'
import type { runData, runs } from '../schema/tables.ts'
import { openMaybe, type Records } from '../vault/records.ts'
import { VaultError } from '../vault/vault.ts'
import { TREE_NANO } from './run-tree.ts'

export const RUN_COLUMNS = `id, tenant_id, agent_name, agent_id, version_id, status, created_ms, updated_ms, started_ms,
  finished_ms, tokens_in, tokens_out, cost_nano, error_code, error_step, labels, trigger_kind, trigger_ref, parent_run_id,
  session_id, schedule_id, forked_run, forked_step, only_step, node_id, isolation, isolation_used, accel, model, budget_exceeded,
  cancel_reason, parked, parked_until_ms, uncertain_tokens, uncertain_nano,
  unpriced_calls, input_nano, cache_read_nano, cache_write_nano, output_nano, cache_read_tokens, cache_write_tokens,
  ${TREE_NANO}`

/** A row of RUN_COLUMNS. */
export type RunRow = Omit<
  RowOf<typeof runs>,
  | 'depth'
  | 'owner'
  | 'epoch'
  | 'due_ms'
  | 'ending'
  | 'ran_ms'
  | 'recoveries'
  | 'recovery_seq'
  | 'event_count'
  | 'head'
  | 'below_nano'
> & { tree_nano: number | null; version_number?: number | null; sub_runs?: number }

const time = (ms: number): string => new Date(ms).toISOString()
const given = <K extends string>(key: K, value: string | null) => (value === null ? {} : { [key]: value })

export const DATA_COLUMNS = 'run_id, input, output, error_message'
/** As much of it as a title takes; what was given at length is left where it is. */
export const TITLE_COLUMNS = `run_id, case when length(input) <= 100000 then input else '' end as input, null as output, error_message`
export type DataRow = RowOf<typeof runData>

interface RunData {
  input: string
  output: string | null
  errorMessage: string | null
}

/** What the node keeps of a run; `unreadable` where it was sealed under another key, or does not open. */
export function readData(row: DataRow, records: Records): RunData | 'unreadable' {
  const record = row.run_id
  try {
    return {
      input: records.open(row.input, { record, field: 'input' }),
      output: openMaybe(records, row.output, { record, field: 'output' }),
      errorMessage: openMaybe(records, row.error_message, { record, field: 'error' }),
    }
  } catch (error) {
    if (error instanceof VaultError) return 'unreadable'
    throw error
  }
}

/** What is said of its cost beside the sum; nothing where there is nothing to say. */
function spending(row: RunRow): Partial<Run> {
  const parts = [row.input_nano, row.cache_read_nano, row.cache_write_nano, row.output_nano]
  const [inputUsd = 0, cacheReadUsd = 0, cacheWriteUsd = 0, outputUsd = 0] = parts.map(toUsd)
  return {
    ...(row.uncertain_tokens + row.uncertain_nano > 0 && {
      uncertainTokens: row.uncertain_tokens,
      uncertainCostUsd: toUsd(row.uncertain_nano),
    }),
    ...(row.cache_read_tokens > 0 && { cacheReadTokens: row.cache_read_tokens }),
    ...(row.cache_write_tokens > 0 && { cacheWriteTokens: row.cache_write_tokens }),
    ...(parts.some(part => part > 0) && { costByClass: { inputUsd, cacheReadUsd, cacheWriteUsd, outputUsd } }),
    ...(row.unpriced_calls > 0 && { unpricedCalls: row.unpriced_calls }),
  }
}

/** A run as the wire shows it; `data` holds what belongs to the node, and is absent from summaries. */
export function toRun(row: RunRow, records?: Records, stored?: DataRow): Run {
  return readRow(`run ${row.id}`, row, () => runOf(row, records, stored))
}

function runOf(row: RunRow, records?: Records, stored?: DataRow): Run {
  const read = records && stored && readData(stored, records)
  const data = read === 'unreadable' ? undefined : read
  return {
    id: row.id,
    tenantId: row.tenant_id,
    agentName: row.agent_name,
    agentId: row.agent_id,
    agentVersionId: row.version_id,
    ...(row.version_number != null && { agentVersion: row.version_number }),
    ...(row.sub_runs !== undefined && { subRuns: row.sub_runs }),
    status: row.status,
    // Empty: dropped with the end of the run.
    ...(data && data.input !== '' && { input: readJson(data.input) as Run['input'] }),
    ...(data && data.output !== null && { output: readJson(data.output) as Run['output'] }),
    ...(read === 'unreadable' && { dataAvailable: false }),
    tokensIn: row.tokens_in,
    tokensOut: row.tokens_out,
    costUsd: toUsd(row.cost_nano),
    treeCostUsd: toUsd(row.tree_nano ?? row.cost_nano),
    ...spending(row),
    createdAt: time(row.created_ms),
    updatedAt: time(row.updated_ms),
    ...(row.started_ms !== null && { startedAt: time(row.started_ms) }),
    ...(row.finished_ms !== null && { finishedAt: time(row.finished_ms) }),
    ...(row.error_code !== null && {
      error: {
        code: row.error_code,
        message: data?.errorMessage ?? row.error_code,
        ...given('stepId', row.error_step),
      },
    }),
    labels: objectIn<Run['labels']>(row.labels),
    trigger: { kind: row.trigger_kind, ...given('ref', row.trigger_ref) },
    ...given('parentRunId', row.parent_run_id),
    ...given('sessionId', row.session_id),
    ...given('scheduleId', row.schedule_id),
    ...(row.forked_run !== null && {
      forkedFrom: {
        runId: row.forked_run,
        stepId: row.forked_step!,
        ...(row.only_step !== null && { onlyStep: true }),
      },
    }),
    ...given('nodeId', row.node_id),
    isolation: {
      declared: row.isolation,
      ...(row.isolation_used !== null && { used: row.isolation_used }),
      ...given('accel', row.accel),
    },
    ...given('model', row.model),
    budgetExceeded: row.budget_exceeded !== 0,
    ...(row.parked !== null &&
      (row.status === 'running' || row.parked === POISONED) && {
        parked: {
          reason: row.parked,
          ...(row.parked_until_ms !== null && { until: time(row.parked_until_ms) }),
        },
      }),
    ...(row.cancel_reason !== null && { cancelReason: row.cancel_reason }),
  }
}
