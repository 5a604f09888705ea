import type { InStatement } from '@libsql/client/web'

/**
 * Ties what a call creates to its `Idempotency-Key`. The work of a call and its stored answer cannot be one transaction,
 * so a process may die between them. A handler that creates something therefore adds `bind(<id of what it creates>)` to
 * the very `db.write([...])` that creates it:
 *
 *     await db.write([insertTheThing, ...idempotency.bind(id)])
 *
 * From that commit on a repeat is answered from the object (`again` of the operation), whether or not this call lives to
 * answer. The statement also fails the whole transaction when the claim was lost meanwhile: a call that was held up
 * beyond the deadline, so that a repeat took its place, then writes nothing.
 */
export interface Idempotency {
  bind(objectId: string): InStatement[]
  /** Takes a binding back that was made before something outside was asked, which then certainly did nothing. */
  unbind(): InStatement[]
}

/** For a call without a key: there is nothing to write. */
export const withoutKey: Idempotency = { bind: () => [], unbind: () => [] }
