import type { InStatement } from '@libsql/client/web'
import { nanoPlus, nanoSum } from '../../shared/sql/sql-values.ts'

/** A run above, or the run itself, that may cost so much with all that is below it; its limit is a hard one. */
export interface TreeLimit {
  runId: string
  agentName: string
  limitNano: number
  /** Spent by the tree, and held for its calls in flight; the one in question left out. */
  usedNano: number
}

/** Runs with all that are below them, as pairs of `top` and `id`. */
const treeOf = (tops: string) =>
  `tree (top, id) as (${tops} union all select t.top, r.id from tree as t join runs as r on r.parent_run_id = t.id)`

/** What calls that a crash cut off may have cost counts, and what runs have cost that were deleted since. */
const SPENT = nanoSum('r.cost_nano + r.uncertain_nano + r.below_nano')

/** The limits over the calls of a run, its own among them, and what their trees have used. */
const LIMITS = `with recursive up (id, parent) as (
    select id, parent_run_id from runs where id = ?1
    union all select r.id, r.parent_run_id from up join runs as r on r.id = up.parent),
  limited (id, most, name) as (
    select up.id, b.cost_nano_run, b.agent_name from up join runs as r on r.id = up.id join budgets as b on b.agent_id = r.agent_id
    where b.hard_fail = 1 and b.cost_nano_run is not null),
  ${treeOf('select id, id from limited')}
  select l.id, l.most, l.name,
    (select ${SPENT} from tree as t join runs as r on r.id = t.id where t.top = l.id)
    + (select ${nanoSum('h.cost_nano')} from tree as t join reservations as h on h.run_id = t.id
      where t.top = l.id and h.step_id <> '' and not (h.run_id = ?1 and h.step_id = ?2)) as used
  from limited as l`

/** The limits of the runs above a run, where it has any above it. */
export const treeLimits = (runId: string, stepId: string): InStatement => ({ sql: LIMITS, args: [runId, stepId] })

export interface TreeLimitRow {
  id: string
  most: number
  name: string
  used: number
}

export const toTreeLimit = ({ id, most, name, used }: TreeLimitRow): TreeLimit => ({
  runId: id,
  agentName: name,
  limitNano: most,
  usedNano: used,
})

/** Spent and held in the calls of a run and of all below it; the call in question left out. */
export const treeUse = (runId: string, stepId: string): InStatement => ({
  sql: `with recursive ${treeOf('select ?1, ?1')}
    select (select ${SPENT} from tree as t join runs as r on r.id = t.id) as spent,
      (select ${nanoSum('h.cost_nano')} from tree as t join reservations as h on h.run_id = t.id
        where h.step_id <> '' and not (h.run_id = ?1 and h.step_id = ?2)) as open`,
  args: [runId, stepId],
})

/** Last of a transaction that holds a call: fails it, as that of a day does, where a limit over it does not hold any more. */
export const treeCheck = (runId: string): InStatement => ({
  sql: `insert into reservations (run_id, step_id, agent_id, tokens, cost_nano)
    select '', '', '', null, 0 from (${LIMITS}) where most < used`,
  args: [runId, ''],
})

const below = (sum: string) => `(with recursive ${treeOf('select ?1, ?1')}
  select ${sum} from tree as t join runs as r on r.id = t.id)`

/** For the transaction that deletes a run: what it and all below it have cost, or may have, stays with the run above it. */
export const keptAbove = (runId: string): InStatement => ({
  sql: `update runs set below_nano = ${nanoPlus('below_nano', below(nanoSum('r.cost_nano + r.below_nano')))},
      uncertain_nano = ${nanoPlus('uncertain_nano', below(nanoSum('r.uncertain_nano')))},
      uncertain_tokens = uncertain_tokens + ${below('coalesce(sum(r.uncertain_tokens), 0)')}
    where id = (select parent_run_id from runs where id = ?1 and status in ('succeeded', 'failed', 'cancelled'))`,
  args: [runId],
})

/** A column of `runs`: what a run and all below it have cost. */
export const TREE_NANO = `(with recursive ${treeOf('select runs.id, runs.id')}
  select ${nanoSum('r.cost_nano + r.below_nano')} from tree as t join runs as r on r.id = t.id) as tree_nano`
