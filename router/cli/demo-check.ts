import type { VerifyReport } from '../../shared/wire/router/checkpoint.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'

/** Every figure in which a demo differs from docs/spec/router.md §11.3; empty when none does. */
export function demoDifferences(status: number, trace: TraceRecord, report: VerifyReport): string[] {
  const [first, second] = trace.attempts
  const { final } = trace
  const figures: [what: string, got: unknown, expected: unknown][] = [
    ['status', status, 200],
    ['attempts', trace.attempts.length, 2],
    ['first attempt', first?.verdict, 'fail'],
    ['its cost', first?.cost, 0.0023],
    ['second attempt', second?.verdict, 'pass'],
    ['its cost', second?.cost, 0.0069],
    ['served rung', final.served_rung, 1],
    ['escalations', final.escalations, 1],
    ['total cost', final.total_cost_usd, 0.0092],
    ['baseline', final.baseline_same_token_usd, 0.0345],
    ['savings', final.savings_usd, 0.0253],
    ['chain valid', report.valid, true],
    ['records in the chain', report.records, 1],
    ['records behind the last checkpoint', report.tenants[0]?.unanchored_tail, 0],
  ]
  return figures
    .filter(([, got, expected]) => got !== expected)
    .map(([what, got, expected]) => `${what}: expected ${String(expected)}, got ${String(got)}`)
}
