import type { Log } from '../../shared/log/log.ts'
import type { BudgetChange } from './error-budgets.ts'

/** A line for each gate that goes off, and for each that comes back. */
export const gateChanges =
  (log: Log) =>
  ({ tenantId, gateId, state }: BudgetChange): void => {
    const fields = { gate: gateId, tenant_id: tenantId }
    if (state === 'active') log.info('a gate works again and is switched on', fields)
    else log.warn('a gate failed more often than its error_budget allows: it is off, and is tried again later', fields)
  }
