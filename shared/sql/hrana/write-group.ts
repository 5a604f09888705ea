import type { ResultSet } from '@libsql/client/web'
import { dbFault } from '../db-fault.ts'
import { refusedBy, StoreServerError } from './server-error.ts'
import {
  bare,
  type Condition,
  FRESH_SCHEMA,
  fromWire,
  type Step,
  type WireBatch,
  type WireError,
  type WireStatement,
} from './wire.ts'

/** One unit's statements, by the places of their steps. */
interface UnitSteps {
  first: number
  /** The step after which the unit is done with, kept or undone. */
  settled: Condition
}

export interface WriteGroup {
  steps: Step[]
  begin: number
  commit: number
  places: UnitSteps[]
  sizes: number[]
}

/** What became of a unit. `again`: the whole transaction was surely undone, and the unit is to be written by itself. */
export type UnitOutcome =
  | { type: 'done'; results: ResultSet[] }
  | { type: 'failed'; error: unknown }
  | { type: 'again' }

const AUTOCOMMIT: Condition = { type: 'is_autocommit' }
const ok = (step: number): Condition => ({ type: 'ok', step })
const not = (cond: Condition): Condition => ({ type: 'not', cond })
const and = (...conds: Condition[]): Condition => ({ type: 'and', conds })
const either = (...conds: Condition[]): Condition => ({ type: 'or', conds })
/** What ended the transaction, a trigger or the server's time limit, must not let a later step commit by itself. */
const inTransaction = (after: Condition): Condition => and(after, not(AUTOCOMMIT))

/**
 * The batch that writes several units in one transaction. Each has a savepoint of its own: a unit that fails is undone up to there, and
 * the others are committed. A unit that is alone needs none. References that are checked at the commit only (deferrable ones, of which the
 * schemas have none) are checked for the whole group.
 */
export function planGroup(units: readonly (readonly WireStatement[])[]): WriteGroup {
  const steps: Step[] = []
  const step = (stmt: WireStatement, condition?: Condition): number => {
    steps.push(condition === undefined ? { stmt } : { stmt, condition })
    return steps.length - 1
  }
  const begin = step(bare('begin immediate'))
  const places: UnitSteps[] = []
  let before = ok(step(FRESH_SCHEMA, ok(begin)))
  for (const statements of units) {
    const place = units.length === 1 ? planUnit(step, statements, before) : planSaved(step, statements, before)
    places.push(place)
    before = place.settled
  }
  const commit = step(bare('commit'), inTransaction(before))
  // Whatever is open, so that a stream does not carry it into the next transaction.
  step(bare('rollback'), not(AUTOCOMMIT))
  return { steps, begin, commit, places, sizes: units.map(({ length }) => length) }
}

type AddStep = (stmt: WireStatement, condition?: Condition) => number

function planUnit(step: AddStep, statements: readonly WireStatement[], before: Condition): UnitSteps {
  let settled = before
  let first = 0
  for (const [index, stmt] of statements.entries()) {
    const at = step(stmt, inTransaction(settled))
    if (index === 0) first = at
    settled = ok(at)
  }
  return { first, settled }
}

function planSaved(step: AddStep, statements: readonly WireStatement[], before: Condition): UnitSteps {
  const save = step(bare('savepoint unit'), inTransaction(before))
  const { first, settled } = planUnit(step, statements, ok(save))
  const release = step(bare('release unit'), inTransaction(settled))
  const back = step(bare('rollback to unit'), inTransaction(and(ok(save), not(ok(release)))))
  const undone = step(bare('release unit'), inTransaction(ok(back)))
  return { first, settled: either(ok(release), ok(undone)) }
}

/** What became of each unit of a group, by the answers to its steps. */
export function readGroup({ begin, commit, places, sizes }: WriteGroup, answer: WireBatch): UnitOutcome[] {
  const began = answer.step_errors[begin]
  if (began) return places.map(() => ({ type: 'failed', error: refusedBy(began) }))
  const committed = answer.step_results[commit] !== null && answer.step_results[commit] !== undefined
  const commitError = answer.step_errors[commit] ?? undefined
  return places.map(({ first }, nth) => {
    const size = sizes[nth] ?? 0
    const failed = failureOf(answer, first, size)
    if (committed) return failed ?? done(answer, first, size)
    // A commit that failed for a reason of the disk may have happened; what was refused before it did not.
    const lost = commitError === undefined ? undefined : refusedBy(commitError)
    if (lost !== undefined && dbFault(lost) === 'unknown') return failed ?? { type: 'failed', error: lost }
    if (places.length > 1) return { type: 'again' }
    return failed ?? { type: 'failed', error: lost ?? undone() }
  })
}

function failureOf({ step_errors }: WireBatch, first: number, size: number): UnitOutcome | undefined {
  for (let at = first; at < first + size; at++) {
    const error: WireError | null | undefined = step_errors[at]
    if (error) return { type: 'failed', error: refusedBy(error, at - first) }
  }
  return undefined
}

function done({ step_results }: WireBatch, first: number, size: number): UnitOutcome {
  const results: ResultSet[] = []
  for (let at = first; at < first + size; at++) {
    const rows = step_results[at]
    // Its savepoint was not reached, although the transaction was committed.
    if (!rows) return { type: 'failed', error: undone() }
    try {
      results.push(fromWire(rows))
    } catch (error) {
      // A value that no number holds; the other units have theirs.
      return { type: 'failed', error }
    }
  }
  return { type: 'done', results }
}

const undone = () => new StoreServerError('the server undid the transaction: try again', 'SQLITE_BUSY')
