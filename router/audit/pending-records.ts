import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'

/** The ids that a caller may know, in the order in which they are looked up (docs/spec/router.md §2.4). */
const KINDS = ['response_id', 'upstream_request_id', 'client_request_id'] as const

/**
 * The records that the writer still holds, for a reader who comes before it. Only pointers are kept: an index by id would cost
 * each request more than all who ever ask (measured: 35 µs against 0.04 µs; a search through a full queue takes 1 ms).
 */
export function pendingRecords(depth: () => number) {
  let waiting: UnsealedTrace[] = []
  return {
    /** After the writer took it. */
    took(record: UnsealedTrace): void {
      waiting.push(record)
      // The writer works in order: of all records it took, those it still holds are the newest.
      const held = depth()
      if (waiting.length > 2 * held + 64) waiting = held === 0 ? [] : waiting.slice(-held)
    },
    /** Of several hits the newest; without a tenant, of any. A record may be found here that has just been sealed. */
    find(id: string, tenant?: string): UnsealedTrace | undefined {
      const own = (one: UnsealedTrace) => tenant === undefined || one.tenant_id === tenant
      const byTrace = waiting.find(one => one.trace_id === id && own(one))
      if (byTrace) return byTrace
      for (const kind of KINDS) {
        const found = waiting.findLast(one => one.final[kind] === id && own(one))
        if (found) return found
      }
      return undefined
    },
  }
}
