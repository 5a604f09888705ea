import { readJson } from '../../shared/json/read-json.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { Checkpoint, CheckpointList, RouterKeys } from '../../shared/wire/router/checkpoint.ts'
import type { FeedbackList, FeedbackRecord } from '../../shared/wire/router/feedback.ts'
import type { Savings, SavingsGroup } from '../../shared/wire/router/savings.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import type { TraceList, TraceListQuery } from '../../shared/wire/router/traces.ts'
import type { checkpoints } from '../schema/tables.ts'
import { measuredSavings } from '../shadow/measured-savings.ts'
import { evals, type StoredEvals } from '../traces/evals.ts'
import { mergedKeys, publishedKeys } from '../traces/keys.ts'
import { savings } from '../traces/savings.ts'
import { traceById, traceStore } from '../traces/store.ts'
import { storedChains } from '../traces/stored-records.ts'

export interface TextWindow {
  since?: string | undefined
  until?: string | undefined
}

export interface FoundTrace {
  trace: TraceRecord
  feedback: FeedbackRecord[]
}

export type AuditReads = ReturnType<typeof auditReads>

/**
 * The questions of the audit, for HTTP and for the command line alike, of a store or of several that hold the tenants between them. Without
 * a tenant they are about all of them.
 */
export function auditReads(...dbs: readonly Db[]) {
  const store = traceStore(...dbs)

  return {
    list: ({ since, until, ...query }: TraceListQuery, tenant?: string): Promise<TraceList> =>
      store.list({ ...query, ...toDates({ since, until }), tenant }),

    /** One look in one index. */
    byTraceId: (id: string, tenant?: string): Promise<TraceRecord | undefined> => traceById(dbs, id, tenant),

    /** By a trace id, a response id or a request id. */
    byAnyId: (id: string, tenant?: string): Promise<TraceRecord | undefined> => store.get(id, tenant),

    /** What was reported about a trace, oldest first. */
    feedbackOf: (tenant: string, traceId: string): Promise<FeedbackRecord[]> => store.feedbackOf(tenant, traceId),

    /** By a trace id, a response id or a request id. */
    async find(id: string, tenant?: string): Promise<FoundTrace | undefined> {
      const trace = await store.get(id, tenant)
      return trace && { trace, feedback: await store.feedbackOf(trace.tenant_id, trace.trace_id) }
    },

    async savings(query: TextWindow & { group?: SavingsGroup | undefined }, tenant?: string): Promise<Savings> {
      const chains = await storedChains(dbs, tenant)
      const sums = await savings(chains, toDates(query), query.group)
      return { ...sums, ...(await measuredSavings(chains, toDates(query))) }
    },

    evals: async (query: TextWindow, tenant?: string): Promise<StoredEvals> =>
      evals(await storedChains(dbs, tenant), toDates(query)),

    checkpoints: (page: { after?: string | undefined; limit: number }, tenant?: string): Promise<CheckpointList> =>
      store.checkpoints({ ...page, tenant }),

    /** In the order of the chains. */
    feedback: (page: { after?: string | undefined; limit: number }, tenant?: string): Promise<FeedbackList> =>
      store.feedback({ ...page, tenant }),

    /** The last checkpoint that was made of a tenant's chain. */
    async latestCheckpoint(tenant: string): Promise<Checkpoint | undefined> {
      for (const db of dbs) {
        const answer = await db.execute({
          sql: 'select body from checkpoints where tenant_id = ? order by ix desc limit 1',
          args: [tenant],
        })
        const [last] = rowsOf<Pick<RowOf<typeof checkpoints>, 'body'>>(answer)
        if (last) return readJson(last.body) as Checkpoint
      }
      return undefined
    },

    keys: async (): Promise<RouterKeys> => mergedKeys(await Promise.all(dbs.map(publishedKeys))),
  }
}

function toDates({ since, until }: TextWindow): { since: Date | undefined; until: Date | undefined } {
  return {
    since: since === undefined ? undefined : new Date(since),
    until: until === undefined ? undefined : new Date(until),
  }
}
