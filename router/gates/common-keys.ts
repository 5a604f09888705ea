import { z } from 'zod'
import type { NanoUsd } from '../../shared/money/money.ts'
import { fromUsd } from '../../shared/money/money.ts'
import { expected } from '../../shared/wire/bounds.ts'
import { choice, decimal, id, usdFee, whole } from '../config/table-fields.ts'

/** docs/spec/router.md §5.1. The `_` spelling of the two values is taken as well. */
const onAbstain = z
  .string({ error: expected('"fail-open" or "fail-closed"') })
  .transform(value => value.replaceAll('_', '-'))
  .pipe(choice(['fail-open', 'fail-closed']))

const errorBudget = z.strictObject(
  {
    window: whole(1, 100_000).default(50),
    min_runs: whole(1, 100_000).default(20),
    max_error: decimal(0, 1).default(0.25),
    probe_after_s: whole(1, 86_400).default(60),
    probes: whole(1, 1000).default(3),
  },
  { error: expected('a table') },
)

/** The keys of every gate, beside its kind. */
export const commonKeys = {
  id,
  on_abstain: onAbstain.default('fail-open'),
  timeout_ms: whole(10, 600_000).optional(),
  cost_usd: usdFee.default(0),
  error_budget: errorBudget.prefault({}),
  max_parallel: whole(1, 256).default(8),
}

export type CommonTable = z.output<z.ZodObject<typeof commonKeys>>

/** docs/spec/router.md §5.4: when a gate that does not work is switched off, and how it comes back. */
export interface ErrorBudget {
  /** Runs that are remembered. */
  readonly window: number
  /** Fewer runs prove nothing. */
  readonly minRuns: number
  /** The share of errors that is still accepted. */
  readonly maxError: number
  readonly probeAfterS: number
  /** Good probes in a row that bring the gate back. */
  readonly probes: number
}

/** What every gate has once its defaults are applied. */
export interface GateBase {
  readonly id: string
  readonly onAbstain: 'fail-open' | 'fail-closed'
  readonly timeoutMs: number
  /** Flat price of one run, added to what the gate itself reports. */
  readonly cost: NanoUsd
  readonly errorBudget: ErrorBudget
  readonly maxParallel: number
}

export const TIMEOUT_MS = { quick: 1000, slow: 30_000 }

export function resolveCommon(table: CommonTable, isSlow: boolean): GateBase {
  const { window, min_runs, max_error, probe_after_s, probes } = table.error_budget
  return {
    id: table.id,
    onAbstain: table.on_abstain,
    timeoutMs: table.timeout_ms ?? (isSlow ? TIMEOUT_MS.slow : TIMEOUT_MS.quick),
    cost: fromUsd(table.cost_usd),
    errorBudget: { window, minRuns: min_runs, maxError: max_error, probeAfterS: probe_after_s, probes },
    maxParallel: table.max_parallel,
  }
}
