import { type Context, Hono } from 'hono'
import type { z } from 'zod'
import { ApiError } from '../../shared/http/api-error.ts'
import { check, sentence } from '../../shared/wire/issues.ts'
import type { CalibrationState } from '../../shared/wire/router/calibration.ts'
import { checkpointListQuery } from '../../shared/wire/router/checkpoint.ts'
import { type Evals, evalsQuery } from '../../shared/wire/router/evals.ts'
import { feedbackListQuery } from '../../shared/wire/router/feedback.ts'
import { savingsQuery } from '../../shared/wire/router/savings.ts'
import { type TraceDetail, traceListQuery } from '../../shared/wire/router/traces.ts'
import type { CallerEnv } from '../auth/access.ts'
import { CursorError } from '../traces/store.ts'
import { explain } from './explain.ts'
import type { FindTrace, FoundRecord } from './find-trace.ts'
import type { AuditReads } from './reads.ts'

export interface AuditDeps {
  /** Undefined where no traces are kept. */
  reads: AuditReads | undefined
  /** Finds a decision that may still be on its way to the store. */
  findTrace: FindTrace
  /** Where the thresholds of the routes stand; without a tenant, of all. */
  calibration: (tenant: string | undefined) => Promise<CalibrationState[]>
  isGateDisabled: (tenant: string, gate: string) => boolean
}

/** The audit over HTTP (docs/spec/router.md §2.1). A caller sees its own tenant; another tenant's id is not there. */
export function auditRoute({ reads: kept, findTrace, calibration, isGateDisabled }: AuditDeps) {
  const reads = (): AuditReads => {
    if (kept === undefined)
      throw new ApiError('not_found', 'this router keeps no traces: it was started without a store')
    return kept
  }

  async function find(id: string, tenant: string | undefined): Promise<FoundRecord> {
    reads()
    const found = await findTrace(id, tenant)
    if (found !== undefined) return found
    throw new ApiError('not_found', `there is no trace with the id ${id}`)
  }

  async function detail(id: string, tenant: string | undefined): Promise<TraceDetail> {
    const found = await find(id, tenant)
    const { tenant_id, trace_id } = found.trace
    return { ...found, feedback: await reads().feedbackOf(tenant_id, trace_id) }
  }

  return new Hono<CallerEnv>()
    .get('/v1/traces', async c => {
      const query = readQuery(c, traceListQuery)
      return c.json(await withCursor('before', () => reads().list(query, c.get('caller').sees)))
    })
    .get('/v1/traces/:id', async c => c.json(await detail(c.req.param('id'), c.get('caller').sees)))
    .get('/v1/traces/:id/explain', async c =>
      c.json(explain((await find(c.req.param('id'), c.get('caller').sees)).trace)),
    )
    .get('/v1/savings', async c => c.json(await reads().savings(readQuery(c, savingsQuery), c.get('caller').sees)))
    .get('/v1/evals', async c => {
      const { sees, tenantId } = c.get('caller')
      const stored = await reads().evals(readQuery(c, evalsQuery), sees)
      const gates = stored.gates.map(gate => ({ ...gate, disabled: isGateDisabled(tenantId, gate.gate_id) }))
      return c.json({ ...stored, gates, calibration: await calibration(sees) } satisfies Evals)
    })
    .get('/v1/checkpoints', async c => {
      const query = readQuery(c, checkpointListQuery)
      return c.json(await withCursor('after', () => reads().checkpoints(query, c.get('caller').sees)))
    })
    .get('/v1/feedback/records', async c => {
      const query = readQuery(c, feedbackListQuery)
      return c.json(await withCursor('after', () => reads().feedback(query, c.get('caller').sees)))
    })
    .get('/.well-known/router-receipts', async c => c.json(await reads().keys()))
}

function readQuery<T extends z.ZodType>(c: Context, schema: T): z.output<T> {
  const checked = check(schema, c.req.query())
  if (checked.ok) return checked.value
  throw new ApiError('validation_failed', sentence(checked.details), { details: checked.details })
}

async function withCursor<T>(name: string, list: () => Promise<T>): Promise<T> {
  try {
    return await list()
  } catch (cause) {
    if (cause instanceof CursorError) throw new ApiError('bad_request', `${name}: ${cause.message}`, { cause })
    throw cause
  }
}
