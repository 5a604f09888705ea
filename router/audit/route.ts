import { ApiError } from '../../shared/http/api-error.ts'
import type { CalibrationState } from '../../shared/wire/router/calibration.ts'
import type { RouterKeys } from '../../shared/wire/router/checkpoint.ts'
import { auditEndpoints as endpoints } from '../../shared/wire/router/endpoints/audit.ts'
import type { TraceDetail } from '../../shared/wire/router/traces.ts'
import { type Operation, operation } from '../http/operation.ts'
import { CursorError } from '../traces/store.ts'
import { explain } from './explain.ts'
import type { AuditReads, FindTrace, FoundRecord } from './reads.ts'

export interface AuditDeps {
  /** Of a tenant, or without one of all; undefined where no traces are kept. */
  reads: ((tenant: string | undefined) => AuditReads) | undefined
  /** The keys that checkpoints are signed with. */
  keys: (() => Promise<RouterKeys>) | undefined
  /** Finds a decision that may still be on its way to the store. */
  findTrace: FindTrace
  /** Where the thresholds of the routes stand; without a tenant, of all. */
  calibration: (tenant: string | undefined) => Promise<CalibrationState[]>
  isGateDisabled: (tenant: string, gate: string) => boolean
}

/** The audit over HTTP (docs/spec/router.md §2.1). A caller sees its own tenant; another tenant's id is not there. */
export function auditOperations({
  reads: stored,
  keys,
  findTrace,
  calibration,
  isGateDisabled,
}: AuditDeps): Operation[] {
  function reads(tenant: string | undefined): AuditReads {
    if (stored !== undefined) return stored(tenant)
    throw withoutStore()
  }

  async function find(id: string, tenant: string | undefined): Promise<FoundRecord> {
    if (stored === undefined) throw withoutStore()
    const found = await findTrace(id, tenant)
    if (found !== undefined) return found
    throw new ApiError('not_found', `there is no trace with the id ${id}`)
  }

  async function detail(id: string, tenant: string | undefined): Promise<TraceDetail> {
    const found = await find(id, tenant)
    const { tenant_id, trace_id } = found.trace
    return { ...found, feedback: await reads(tenant).feedbackOf(tenant_id, trace_id) }
  }

  return [
    operation(endpoints.traces, ({ query, context }) => {
      const { sees } = context.get('caller')
      return withCursor('before', () => reads(sees).list(query, sees))
    }),
    operation(endpoints.trace, ({ params, context }) => detail(params.id, context.get('caller').sees)),
    operation(endpoints.explain, async ({ params, context }) =>
      explain((await find(params.id, context.get('caller').sees)).trace),
    ),
    operation(endpoints.savings, ({ query, context }) => {
      const { sees } = context.get('caller')
      return reads(sees).savings(query, sees)
    }),
    operation(endpoints.evals, async ({ query, context }) => {
      const { sees, tenantId } = context.get('caller')
      const found = await reads(sees).evals(query, sees)
      const gates = found.gates.map(gate => ({ ...gate, disabled: isGateDisabled(tenantId, gate.gate_id) }))
      return { ...found, gates, calibration: await calibration(sees) }
    }),
    operation(endpoints.checkpoints, ({ query, context }) => {
      const { sees } = context.get('caller')
      return withCursor('after', () => reads(sees).checkpoints(query, sees))
    }),
    operation(endpoints.feedbackRecords, ({ query, context }) => {
      const { sees } = context.get('caller')
      return withCursor('after', () => reads(sees).feedback(query, sees))
    }),
    operation(endpoints.keys, () => {
      if (keys === undefined) throw withoutStore()
      return keys()
    }),
  ]
}

const withoutStore = () => new ApiError('not_found', 'this router keeps no traces: it was started without a store')

async function withCursor<T>(name: string, list: () => Promise<T>): Promise<T> {
  try {
    return await list()
  } catch (cause) {
    if (cause instanceof CursorError) throw new ApiError('bad_request', `${name}: ${cause.message}`, { cause })
    throw cause
  }
}
