import type { TraceRecord, UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { AuditReads } from './reads.ts'

export interface FindTraceDeps {
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
