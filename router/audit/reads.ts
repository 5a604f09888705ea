import { readJson } from '../../shared/json/read-json.ts'
import { toUsd } from '../../shared/money/money.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { Checkpoint, CheckpointList, RouterKeys } from '../../shared/wire/router/checkpoint.ts'
import type { FeedbackList, FeedbackRecord } from '../../shared/wire/router/feedback.ts'
import type { Savings, SavingsGroup } from '../../shared/wire/router/savings.ts'
import type { TraceRecord, UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { TraceList, TraceListQuery } from '../../shared/wire/router/traces.ts'
import { DRAWS, interval95, resampledSums } from '../ope/estimate.ts'
import type { checkpoints, shadows } from '../schema/tables.ts'
import { FEWEST } from '../shadow/shadow-sums.ts'
import { evals, type StoredEvals } from '../traces/evals.ts'
import { mergedKeys, publishedKeys } from '../traces/keys.ts'
import { savings } from '../traces/savings.ts'
import { traceById, traceStore } from '../traces/store.ts'
import { type StoredChain, storedChains } from '../traces/stored-records.ts'

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

interface FindTraceDeps {
  /** What a tenant's records are read with, or without one those of all; undefined where no traces are kept. */
  reads: ((tenant: string | undefined) => AuditReads) | undefined
  /** A record that is not in the store yet; without a tenant, of any. */
  pending: (id: string, tenant: string | undefined) => Promise<UnsealedTrace | undefined>
  /** Resolves when a record has been made of every call that has ended. */
  made: () => Promise<void>
}

export type FoundRecord = { trace: TraceRecord; pending: false } | { trace: UnsealedTrace; pending: true }

export type FindTrace = ReturnType<typeof traceFinder>

/** Finds a decision by any of its ids from the moment in which its answer has ended, in the store or on its way there. */
export function traceFinder({ reads: readsOf, pending, made }: FindTraceDeps) {
  return async (id: string, tenant: string | undefined): Promise<FoundRecord | undefined> => {
    const reads = readsOf?.(tenant)
    if (reads === undefined) return undefined
    // By its own id a record is found in one step, and most that are asked for have been in the store for long.
    const own = await reads.byTraceId(id, tenant)
    if (own !== undefined) return { trace: own, pending: false }
    // The record of a call is made a moment after its answer. Who asks at once would miss it, or find an older one of the same name.
    await made()
    // First what waits: the writer may move it to the store while the store is asked.
    const waiting = await pending(id, tenant)
    const stored = waiting ? await reads.byTraceId(waiting.trace_id, tenant) : await reads.byAnyId(id, tenant)
    if (stored !== undefined) return { trace: stored, pending: false }
    return waiting && { trace: waiting, pending: true }
  }
}

/** The newest samples of a window are enough for its interval. */
const MOST = 10_000
const SEED = 45

type Row = Pick<RowOf<typeof shadows>, 'ts_ms' | 'same_nano' | 'top_nano' | 'spent_nano'>

interface Window {
  since?: Date | undefined
  until?: Date | undefined
}

/** What the samples of a window measured: the top rung's cost beside the same tokens at its prices, and how sure their ratio is. */
async function measuredSavings(
  chains: readonly StoredChain[],
  { since, until }: Window,
): Promise<Pick<Savings, 'shadow' | 'ratio_ci'>> {
  const stores = [...Map.groupBy(chains, ({ db }) => db)]
  const found = await Promise.all(
    stores.map(async ([db, own]) => {
      const tenants = JSON.stringify(own.map(({ tenant }) => tenant))
      const answer = await db.execute({
        sql: `select ts_ms, same_nano, top_nano, spent_nano from shadows
          where tenant_id in (select value from json_each(?)) and ts_ms >= ? and ts_ms < ? order by ts_ms desc limit ${MOST}`,
        args: [tenants, since?.getTime() ?? 0, until?.getTime() ?? Number.MAX_SAFE_INTEGER],
      })
      return rowsOf<Row>(answer)
    }),
  )
  const rows = found.length === 1 ? found[0]! : newest(found.flat())
  if (rows.length === 0) return {}
  const column = (name: keyof Row) => Float64Array.from(rows, row => row[name])
  const [same, top] = [column('same_nano'), column('top_nano')]
  const sum = (values: Float64Array) => toUsd(values.reduce((total, value) => total + value, 0))
  const shadow = {
    requests: rows.length,
    spent_usd: sum(column('spent_nano')),
    same_token_usd: sum(same),
    measured_usd: sum(top),
  }
  if (rows.length < FEWEST) return { shadow }
  const [tops, sames] = resampledSums([top, same], DRAWS, SEED)
  return { shadow, ratio_ci: interval95(tops!.map((value, draw) => value / sames![draw]!)) }
}

const newest = (rows: readonly Row[]): Row[] => rows.toSorted((a, b) => b.ts_ms - a.ts_ms).slice(0, MOST)
