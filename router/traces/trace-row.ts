import { fromUsd } from '../../shared/money/money.ts'
import type { Attempt, UnsealedTrace } from '../../shared/wire/router/trace.ts'
import { sealableText } from './canonical-trace.ts'

/** The columns that repeat parts of the record, in the order of a row. `body` follows them. */
export const rowColumns = [
  'tenant_id',
  'seq',
  'trace_id',
  'ts_ms',
  'session_id',
  'mode',
  'route_ix',
  'served_from',
  'served_rung',
  'served_model',
  'total_nano',
  'gate_nano',
  'baseline_nano',
  'calibrated_nano',
  'escalations',
  'failovers',
  'response_id',
  'upstream_request_id',
  'client_request_id',
  'gates',
] as const

export type Cell = string | number | null

/** What a row repeats of a record. */
export type RowPart = Pick<
  UnsealedTrace,
  'tenant_id' | 'trace_id' | 'ts' | 'session_id' | 'mode' | 'route_ix' | 'attempts' | 'final'
>

/** Tells what a record says in its columns. Throws where a value does not fit the column, so that nothing unfit reaches SQL. */
export function rowOf(record: RowPart, seq: number): Cell[] {
  const { final } = record
  return [
    text(record.tenant_id),
    integer(seq),
    text(record.trace_id),
    integer(Date.parse(record.ts)),
    text(record.session_id),
    text(record.mode),
    orNull(record.route_ix, integer),
    text(final.served_from),
    integer(final.served_rung),
    orNull(final.served_model, text),
    orNull(final.total_cost_usd, fromUsd),
    fromUsd(final.gate_cost_usd),
    orNull(final.baseline_same_token_usd, fromUsd),
    orNull(final.baseline_calibrated_usd, fromUsd),
    integer(final.escalations),
    integer(final.failovers),
    orNull(final.response_id, text),
    orNull(final.upstream_request_id, text),
    orNull(final.client_request_id, text),
    gateRuns(record.attempts),
  ]
}

/** Every gate run of the record as `[gate_id, verdict, cost in nano-USD, microseconds]`, for counts that do not read bodies. */
function gateRuns(attempts: readonly Attempt[]): string | null {
  const runs: Cell[][] = []
  for (const { gates } of attempts) {
    for (const { gate_id, verdict, cost, latency_ms } of gates) {
      runs.push([sealableText(gate_id), verdict, fromUsd(cost), Math.round(latency_ms * 1000)])
    }
  }
  return runs.length === 0 ? null : JSON.stringify(runs)
}

function orNull<T>(value: T | null | undefined, cell: (value: T) => Cell): Cell {
  return value === null || value === undefined ? null : cell(value)
}

function text(value: string): string {
  if (typeof value !== 'string') throw new TypeError(`A trace column expected text, got ${typeof value}.`)
  return sealableText(value)
}

function integer(value: number): number {
  if (!Number.isSafeInteger(value)) throw new TypeError(`A trace column expected an integer, got ${value}.`)
  return value
}
