import type { InStatement } from '@libsql/client/web'

/**
 * What a handler finds at `c.get('idempotency')` when the call carries an `Idempotency-Key`; undefined without one.
 *
 * The work of a call and its stored answer cannot be one transaction, so a process may die between them. A handler that
 * creates something therefore adds `statement(<id of what it creates>)` to the very `db.write([...])` that creates it:
 *
 *     await db.write([insertTheThing, ...(idempotency ? [idempotency.statement(id)] : [])])
 *
 * From that commit on a repeat is answered from the object (`again` of the route), whether or not this call lives to
 * answer. The statement also fails the whole transaction when the claim was lost meanwhile: a call that was held up
 * beyond the deadline, so that a repeat took its place, then writes nothing.
 */
export interface Idempotency {
  statement(objectId: string): InStatement
  /** Takes a binding back that was made before something outside was asked, which then certainly did nothing. */
  undo(): InStatement
}
