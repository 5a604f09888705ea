import type { InStatement } from '@libsql/client/web'
import { type Db, objectIn, type RowOf, readRow, rowsOf } from '../../shared/sql/db.ts'
import { isFailedCondition } from '../../shared/sql/db-fault.ts'
import { nanoPlus, nanoSum, storableText } from '../../shared/sql/sql-values.ts'
import { type PageOf, pageSql, readPage } from '../http/page.ts'
import { type TreeLimitRow, toTreeLimit, treeCheck, treeLimits, treeUse } from '../runs/run-tree.ts'
import type { budgets, reservations, runs } from '../schema/tables.ts'
import type { PastRun } from './forecast.ts'
import type { Estimate, Hold, Limits, OwnUse, Today } from './limits.ts'
import { type LostCall, lost, uncertain } from './lost-calls.ts'

export interface BudgetRow extends Limits {
  agentId: string
  tenantId: string
  agentName: string
  hardFail: boolean
  notifyAtPct: number
  toolLimits: Record<string, number>
  updatedMs: number
  createdMs: number
}

export interface OfRun {
  runId: string
  agentId: string
  day: string
}

export interface ToolUse extends OfRun {
  /** `<connector>.<action>` */
  tool: string
  stepId: string
}

export interface CallPlace extends OfRun {
  stepId: string
  attempt: number
  /** Under which a node asked for it. */
  requestId?: string
}

/** The agent, and those of its name that were deleted so late that they may have used something of the day. */
const OF_THE_NAME = `(select ?1 union all select former.id from agents join agents as former indexed by agents_former
  on former.tenant_id = agents.tenant_id and former.name = agents.name
  and former.deleted_ms >= (unixepoch(?2) - 86400) * 1000 where agents.id = ?1)`

const TODAY = `with days as (select * from usage_days where agent_id in ${OF_THE_NAME} and day = ?2),
  held as (select tokens, cost_nano from reservations where agent_id in ${OF_THE_NAME})
select
  (select coalesce(sum(runs), 0) from days) as runs,
  (select coalesce(sum(tokens_in + tokens_out + uncertain_tokens), 0) from days) as tokens,
  (select ${nanoSum('cost_nano + uncertain_nano')} from days) as cost_nano,
  (select coalesce(sum(tokens), 0) from held) as held_tokens,
  (select ${nanoSum('cost_nano')} from held) as held_nano,
  (select coalesce(sum(uncertain_tokens), 0) from days) as uncertain_tokens,
  (select ${nanoSum('uncertain_nano')} from days) as uncertain_nano`

/** Last of a transaction: fails it, by a null where none may be, when a hard limit does not hold any more. */
const CHECK = `insert into reservations (run_id, step_id, agent_id, tokens, cost_nano)
select '', '', b.agent_id, null, 0 from budgets b, (${TODAY}) as t where b.agent_id = ?1 and b.hard_fail = 1
  and (b.runs_day < t.runs or b.tokens_day < t.tokens + t.held_tokens or b.cost_nano_day < t.cost_nano + t.held_nano)`

type Row = RowOf<typeof budgets>
type TodayColumn = 'runs' | 'tokens' | 'cost_nano' | 'held_tokens' | 'held_nano' | 'uncertain_tokens' | 'uncertain_nano'
type TodayRow = Record<TodayColumn, number>

/** The forecast's row of a run. */
const FORECAST = ''

export type BudgetStore = ReturnType<typeof budgetStore>

export function budgetStore(db: Db) {
  const asked = new Map<string, Promise<BudgetRow | undefined>>()

  async function read(agentId: string): Promise<BudgetRow | undefined> {
    await null
    asked.delete(agentId)
    const found = await db.execute({ sql: 'select * from budgets where agent_id = ?', args: [agentId] })
    const [row] = rowsOf<Row>(found)
    return row && toBudget(row)
  }

  return {
    ...callHolds(db),
    ...callEnds(db),

    /**
     * Who asks at the same moment shares one answer, which is read after the last of them asked: the runs of an agent whose steps were
     * kept by one commit all ask their model next.
     */
    get(agentId: string): Promise<BudgetRow | undefined> {
      const known = asked.get(agentId)
      if (known) return known
      const one = read(agentId)
      asked.set(agentId, one)
      return one
    },

    async put({ agentId, tenantId, agentName, ...budget }: Omit<BudgetRow, 'createdMs'>): Promise<void> {
      await db.execute({
        sql: `insert into budgets (agent_id, tenant_id, agent_name, cost_nano_day, cost_nano_run, tokens_day, runs_day,
            hard_fail, notify_pct, tool_limits, updated_ms, created_ms) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)
          on conflict (agent_id) do update set cost_nano_day = excluded.cost_nano_day,
            cost_nano_run = excluded.cost_nano_run, tokens_day = excluded.tokens_day, runs_day = excluded.runs_day,
            hard_fail = excluded.hard_fail, notify_pct = excluded.notify_pct, tool_limits = excluded.tool_limits,
            updated_ms = excluded.updated_ms`,
        args: [
          ...[agentId, tenantId, agentName, budget.costNanoDay, budget.costNanoRun, budget.tokensDay, budget.runsDay],
          ...[budget.hardFail ? 1 : 0, budget.notifyAtPct, JSON.stringify(budget.toolLimits), budget.updatedMs],
        ],
      })
    },

    /** That of a name, also where its agent is deleted. */
    async remove(tenantId: string, agentName: string): Promise<boolean> {
      const sql = 'delete from budgets where tenant_id = ? and agent_name = ?'
      const { rowsAffected } = await db.execute({ sql, args: [tenantId, storableText(agentName)] })
      return rowsAffected > 0
    },

    /** The one that an agent of this name has, or will have once it is made. */
    async ofName(tenantId: string, agentName: string): Promise<BudgetRow | undefined> {
      const found = await db.execute({ sql: OF_NAME, args: [tenantId, storableText(agentName)] })
      const [row] = rowsOf<Row>(found)
      return row && toBudget(row)
    },

    async list(tenantId: string, page: PageOf): Promise<BudgetRow[]> {
      const { where, order, args } = pageSql(page)
      const found = await db.execute({
        sql: `select * from (select *, agent_id as id from budgets where tenant_id = ?
            and agent_id in (select id from agents where deleted_ms is null)) where true ${where} ${order}`,
        args: [tenantId, ...args],
      })
      return readPage(page, rowsOf<Row>(found), toBudget)
    },

    async today(agentId: string, day: string): Promise<Today> {
      return toToday(rowsOf<TodayRow>(await db.execute({ sql: TODAY, args: [agentId, day] }))[0]!)
    },

    /** Marks a run that passed a soft limit, once. */
    async overSoftly(runId: string, told: InStatement): Promise<boolean> {
      const { rows } = await db.execute({
        sql: 'select 1 from runs where id = ? and budget_exceeded = 0',
        args: [runId],
      })
      if (rows.length === 0) return false
      await db.write([{ sql: 'update runs set budget_exceeded = 1 where id = ?', args: [runId] }, told])
      return true
    },

    write: (statements: InStatement[]) => db.write(statements),

    /** Runs of one version that succeeded or failed, of the last thousand that ended. */
    async past(versionId: string, sinceMs: number): Promise<PastRun[]> {
      const found = await db.execute({
        sql: `select tokens_in, tokens_out, cost_nano from
            (select status, tokens_in, tokens_out, cost_nano from runs where version_id = ? and finished_ms >= ?
              order by finished_ms desc limit 1000)
          where status in ('succeeded', 'failed') limit 200`,
        args: [versionId, sinceMs],
      })
      return rowsOf<Pick<RowOf<typeof runs>, 'tokens_in' | 'tokens_out' | 'cost_nano'>>(found).map(row => ({
        tokensIn: row.tokens_in,
        tokensOut: row.tokens_out,
        costNano: row.cost_nano,
      }))
    },
  }
}

const OF_NAME = 'select * from budgets where tenant_id = ? and agent_name = ? order by updated_ms desc limit 1'

/** For the transaction that makes an agent: a budget is not shed by deleting the agent, which asks for another scope than the budget. */
export function keptBudget({ id, tenantId, name }: { id: string; tenantId: string; name: string }): InStatement {
  return {
    sql: `insert into budgets (agent_id, tenant_id, agent_name, cost_nano_day, cost_nano_run, tokens_day, runs_day, hard_fail,
        notify_pct, tool_limits, created_ms, updated_ms)
      select ?, tenant_id, agent_name, cost_nano_day, cost_nano_run, tokens_day, runs_day, hard_fail, notify_pct, tool_limits,
        created_ms, updated_ms from (${OF_NAME})`,
    args: [id, tenantId, name],
  }
}

/** What is held for runs and their calls until they have ended, and what is counted of them. */
function callHolds(db: Db) {
  return {
    /**
     * Counts the call of a step against what a day allows; false: there is none left. A step that was counted before, in an
     * earlier life of its run, is not counted again. Uses from before the day before are let go: another process may not have passed midnight.
     */
    async useTool({ agentId, day, tool, runId, stepId }: ToolUse, limit: number): Promise<boolean> {
      const [, , found] = await db.write([
        { sql: "delete from tool_uses where agent_id = ? and day < date(?, '-1 day')", args: [agentId, day] },
        {
          sql: `insert into tool_uses (agent_id, day, tool, n, run_id, step_id)
            select ?1, ?2, ?3, used.n + 1, ?4, ?5
            from (select coalesce(max(iif(agent_id = ?1, n, 0)), 0) as n, count(*) as uses
              from tool_uses where agent_id in ${OF_THE_NAME} and day = ?2 and tool = ?3) as used
            where used.uses < ?6
            on conflict (run_id, step_id) do nothing`,
          args: [agentId, day, tool, runId, stepId, limit],
        },
        { sql: 'select 1 from tool_uses where run_id = ? and step_id = ?', args: [runId, stepId] },
      ])
      return found?.rows.length === 1
    },
    /** Everything that a decision about a call needs, in one read. */
    async beforeCall({ runId, agentId, day, stepId }: CallPlace, hasAbove: boolean) {
      const [budget, today, tree, held, limits] = await db.read([
        { sql: 'select * from budgets where agent_id = ?', args: [agentId] },
        { sql: TODAY, args: [agentId, day] },
        treeUse(runId, stepId),
        { sql: 'select * from reservations where run_id = ?', args: [runId] },
        ...(hasAbove ? [treeLimits(runId, stepId)] : []),
      ])
      const [row] = rowsOf<Row>(budget!)
      const above = (limits ? rowsOf<TreeLimitRow>(limits) : []).map(toTreeLimit).filter(limit => limit.runId !== runId)
      if (row === undefined && above.length === 0) return undefined
      const forecast = { tokens: 0, costNano: 0 }
      let before: (Estimate & { attempt: number; moved: Estimate }) | undefined
      for (const one of rowsOf<RowOf<typeof reservations>>(held!)) {
        const size = { tokens: one.tokens, costNano: one.cost_nano }
        if (one.step_id === FORECAST) add(forecast, size)
        else if (one.step_id === stepId) {
          const moved = { tokens: one.moved_tokens, costNano: one.moved_nano }
          before = { ...size, attempt: one.attempt, moved }
        }
      }
      const { spent, open } = rowsOf<{ spent: number; open: number }>(tree!)[0]!
      const own: OwnUse = { usedNano: spent + open, forecast }
      return { budget: row && toBudget(row), today: toToday(rowsOf<TodayRow>(today!)[0]!), own, above, before }
    },
    /** Whether a run above this one has a limit that its calls count against. */
    async hasLimitAbove(runId: string): Promise<boolean> {
      return rowsOf<TreeLimitRow>(await db.execute(treeLimits(runId, ''))).some(({ id }) => id !== runId)
    },
    /** For the transaction that makes a run: what it is likely to use is held, and the limits are looked at once more. */
    admission({ runId, agentId, day }: OfRun, { tokens, costNano }: Estimate): InStatement[] {
      return [
        {
          // Not where the run itself was not made, as when another instance had made it before.
          sql: `insert into reservations (run_id, step_id, agent_id, tokens, cost_nano) select ?1, ?2, ?3, ?4, ?5
            where exists (select 1 from runs where id = ?1)`,
          args: [runId, FORECAST, agentId, tokens, costNano],
        },
        { sql: CHECK, args: [agentId, day] },
      ]
    },
    /** Holds the worst case of a call; of an earlier hold for the same step, what it took from the forecast goes back first. */
    async hold(place: CallPlace, hold: Hold, inTree: boolean): Promise<void> {
      const { tokens, costNano, moved, maxOutputTokens } = hold
      const { runId, agentId, stepId, attempt, day, requestId = null } = place
      await db.write([
        ...giveBack(runId, stepId, { tokens: 0, costNano: 0 }),
        {
          sql: `update reservations set tokens = max(0, tokens - ?), cost_nano = max(0, cost_nano - ?)
            where run_id = ? and step_id = ''`,
          args: [moved.tokens, moved.costNano, runId],
        },
        {
          sql: `insert into reservations (run_id, step_id, agent_id, attempt, tokens, cost_nano, moved_tokens, moved_nano,
              request_id, output_tokens) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
          args: [
            ...[runId, stepId, agentId, attempt, tokens, costNano, moved.tokens, moved.costNano],
            ...[requestId, maxOutputTokens],
          ],
        },
        { sql: CHECK, args: [agentId, day] },
        ...(inTree ? [treeCheck(runId)] : []),
      ])
    },
    /** The answer that was granted under a request which is still open. */
    async granted({ runId, stepId, requestId }: CallPlace & { requestId: string }): Promise<number | undefined> {
      const sql = 'select output_tokens from reservations where run_id = ? and step_id = ? and request_id = ?'
      const [row] = rowsOf<{ output_tokens: number | null }>(
        await db.execute({ sql, args: [runId, stepId, requestId] }),
      )
      return row && (row.output_tokens ?? 0)
    },
  }
}

/** What becomes of a hold once its call has ended, or was cut off. */
function callEnds(db: Db) {
  return {
    /** A call that was interrupted may have been billed: its hold is spent, as far as the limits are concerned. */
    async uncertain({ runId, day, stepId }: CallPlace, model: string): Promise<void> {
      await db.write(lost({ runId, day, stepId, model }))
    },
    /** The same where nothing was held, because there is no budget: at the most that the call may have cost. */
    async uncertainBy({ runId, day }: Pick<CallPlace, 'runId' | 'day'>, model: string, most: Estimate): Promise<void> {
      await db.write(uncertain({ runId, day, model }, most))
    },
    /** For the transaction that ends a run in the middle of such a call. */
    lost: (call: LostCall & { epoch: number }): InStatement[] => lost(call),
    /** For the transaction that records a result: the hold ends, and the forecast gets back what was not used. */
    settlement: (runId: string, epoch: number, stepId: string, used: Estimate): InStatement[] =>
      giveBack(runId, stepId, used, epoch),
  }
}

/** Whether a transaction failed because a limit did not hold any more. */
export function isOverLimit(error: unknown): boolean {
  return isFailedCondition(error, 'reservations.tokens')
}

function giveBack(runId: string, stepId: string, used: Estimate, epoch?: number): InStatement[] {
  const mine =
    epoch === undefined ? '' : "and exists (select 1 from runs where id = ?1 and epoch = ?5 and status = 'running')"
  const more = epoch === undefined ? [] : [epoch]
  return [
    {
      sql: `update reservations set tokens = reservations.tokens + max(0, call.moved_tokens - ?3),
          cost_nano = ${nanoPlus('reservations.cost_nano', 'max(0, call.moved_nano - ?4)')}
        from reservations as call
        where reservations.run_id = ?1 and reservations.step_id = '' and call.run_id = ?1 and call.step_id = ?2 ${mine}`,
      args: [runId, stepId, used.tokens, used.costNano, ...more],
    },
    {
      sql: `delete from reservations where run_id = ?1 and step_id = ?2
        ${epoch === undefined ? '' : "and exists (select 1 from runs where id = ?1 and epoch = ?3 and status = 'running')"}`,
      args: [runId, stepId, ...more],
    },
  ]
}

function add(sum: Estimate, more: Estimate): void {
  sum.tokens += more.tokens
  sum.costNano += more.costNano
}

function toBudget(row: Row): BudgetRow {
  return readRow(`the budget of agent ${row.agent_name}`, row, () => ({
    agentId: row.agent_id,
    tenantId: row.tenant_id,
    agentName: row.agent_name,
    costNanoDay: row.cost_nano_day,
    costNanoRun: row.cost_nano_run,
    tokensDay: row.tokens_day,
    runsDay: row.runs_day,
    hardFail: row.hard_fail === 1,
    notifyAtPct: row.notify_pct,
    toolLimits: objectIn<Record<string, number>>(row.tool_limits),
    updatedMs: row.updated_ms,
    createdMs: row.created_ms,
  }))
}

function toToday(row: TodayRow): Today {
  return {
    runs: row.runs,
    tokens: row.tokens,
    costNano: row.cost_nano,
    heldTokens: row.held_tokens,
    heldNano: row.held_nano,
    uncertainTokens: row.uncertain_tokens,
    uncertainNano: row.uncertain_nano,
  }
}
