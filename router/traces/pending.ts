import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'

export interface PendingIds {
  tenant_id: string
  trace_id: string
  response_id?: string | undefined
  upstream_request_id?: string | undefined
  client_request_id?: string | undefined
}

export interface Pending {
  readonly tenant_id: string
  readonly trace_id: string
  /** The record, once there is one. */
  record?: UnsealedTrace
}

/** What an id may be, in the order in which it is looked up (router contract §2.4). */
const KINDS = ['trace_id', 'response_id', 'upstream_request_id', 'client_request_id'] as const

/**
 * The newest requests by every id that a caller may know. An answer's ids are registered before its head is sent, so that feedback in the
 * same moment finds them, long before the record is in the store.
 */
export function pendingIndex(most = 50_000) {
  const entries = new Map<string, Pending & { keys: string[] }>()
  const byKey = new Map<string, string>()

  function drop(trace: string) {
    const entry = entries.get(trace)
    entries.delete(trace)
    for (const key of entry?.keys ?? []) if (byKey.get(key) === trace) byKey.delete(key)
  }

  return {
    /** May be called again for the same trace when more ids become known. */
    register(ids: PendingIds): void {
      const { tenant_id, trace_id } = ids
      let entry = entries.get(trace_id)
      if (entry === undefined) {
        entry = { tenant_id, trace_id, keys: [] }
        entries.set(trace_id, entry)
      }
      for (const kind of KINDS) {
        const id = ids[kind]
        if (id === undefined) continue
        const key = `${kind} ${tenant_id} ${id}`
        if (entry.keys.includes(key)) continue
        entry.keys.push(key)
        // Trace ids of version 7 sort by time.
        if (trace_id > (byKey.get(key) ?? '')) byKey.set(key, trace_id)
      }
      if (entries.size > most) drop(entries.keys().next().value ?? '')
    },
    /** The record as it was queued, for a reader that comes before the writer. */
    attach(record: UnsealedTrace): void {
      const entry = entries.get(record.trace_id)
      if (entry !== undefined) entry.record = record
    },
    /** The record is in the store: its ids stay, the record itself need not. */
    settled(traceId: string): void {
      const entry = entries.get(traceId)
      if (entry !== undefined) delete entry.record
    },
    /** Of several hits the newest. Another tenant's ids are not found. */
    get(tenant: string, id: string): Pending | undefined {
      for (const kind of KINDS) {
        const trace = byKey.get(`${kind} ${tenant} ${id}`)
        if (trace !== undefined) return entries.get(trace)
      }
      return undefined
    },
    get size(): number {
      return entries.size
    },
  }
}
