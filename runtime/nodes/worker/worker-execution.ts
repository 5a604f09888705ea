import { toBase64, utf8 } from '../../../shared/sign/bytes.ts'
import { canonicalize } from '../../../shared/sign/jcs.ts'
import { type Sha256, sha256Hex } from '../../../shared/sign/sha256.ts'
import { type Db, type RowOf, rowsOf } from '../../../shared/sql/db.ts'
import { sealTo } from '../../../shared/tunnel/sealed-payload.ts'
import type { ExecutionDeps } from '../../assemble-execution.ts'
import type { Budgets } from '../../budgets/assemble.ts'
import { mostTokensIn } from '../../budgets/ledger.ts'
import type { BudgetStore } from '../../budgets/store.ts'
import type { UseTool } from '../../budgets/tool-limits.ts'
import type { Core } from '../../core.ts'
import { RunFailure, StepFailure } from '../../execution/failure.ts'
import type { Claimed } from '../../execution/lease-store.ts'
import type { FoundModel } from '../../execution/models/model.ts'
import type { ChildRuns } from '../../execution/tools/sub-agent-tool.ts'
import type { RunStore } from '../../runs/store.ts'
import type { tunnelChildren } from '../../schema/tables.ts'
import type { runEvents } from '../../webhooks/run-events.ts'
import { inputAad } from '../sealed-payloads.ts'
import { type BudgetRequests, budgetRequests } from './budget-requests.ts'
import { type Report, reportRows, setAsideReports, waitReport } from './report-rows.ts'
import { takeOverRuns } from './take-over-runs.ts'
import type { WorkerIdentity } from './worker.ts'

export interface WorkerExecutionDeps {
  budgets: Pick<Budgets, 'ledger' | 'store' | 'useTool'>
  runEvents: ReturnType<typeof runEvents>
}

export interface WorkerExecution
  extends Pick<
    ExecutionDeps,
    'ledger' | 'extraStatements' | 'kept' | 'extraWhenSetAside' | 'extraWhenWaiting' | 'takenHere' | 'childrenOf'
  > {
  /** Its questions whether a call may be made; undefined where this process is no node. */
  asks?: BudgetRequests
  useTool: UseTool
}

/** What a node does otherwise than a control plane when it executes runs: it reports them, asks for budget, and hands children up. */
export function workerExecution(
  { db, sha256 }: Pick<Core, 'db' | 'sha256'>,
  worker: WorkerIdentity | undefined,
  { budgets: { ledger, store, useTool }, runEvents }: WorkerExecutionDeps,
): WorkerExecution {
  if (!worker) return { ledger, useTool, ...runEvents }
  const asks = budgetRequests()
  const reports = reportRows(worker.reportsAs)
  const reportAside = setAsideReports(worker.reportsAs)
  const others = worker.reportsAs ? takeOverRuns(worker.reportsAs, db) : undefined
  return {
    ...runEvents,
    asks,
    useTool: grantedTool(db, asks, store),
    ledger: { ...ledger, within: (run, model) => grantedModel(db, asks, run, ledger.within(run, model)) },
    extraStatements: units => [...runEvents.extraStatements(units), ...reports(units)],
    kept: worker.reportSoon,
    extraWhenWaiting: waitReport(worker.reportsAs),
    extraWhenSetAside: ids => [...(others?.aside(ids) ?? []), reportAside(ids)],
    ...(others && { takenHere: others.claimed }),
    childrenOf: runs => requestSubagents(worker, { db, runs, sha256 }),
  }
}

/** A model as a run on a node may ask it, whose agent has a limit of a day: each call is granted by the control plane first. */
function grantedModel(
  db: Db,
  asks: Pick<BudgetRequests, 'ask'>,
  run: Pick<Claimed, 'id'>,
  model: FoundModel,
): FoundModel {
  return {
    ...model,
    async ask(request, call) {
      const found = await db.execute({
        sql: `select epoch, ask_budget, (select coalesce(max(seq), 0) from events where run_id = ?1) as last_event from tunnel_runs where run_id = ?1`,
        args: [run.id],
      })
      const [placed] = rowsOf<{ epoch: number; ask_budget: number; last_event: number }>(found)
      if (placed === undefined || placed.ask_budget === 0) return model.ask(request, call)
      const costOf = (await model.prices?.()) ?? null
      const tokensIn = mostTokensIn(request)
      const { maxOutputTokens: wanted } = request
      // `<runId>:<stepId>:<attempt>`
      const colon = call.key.lastIndexOf(':')
      const stepId = call.key.slice(run.id.length + 1, colon)
      const { refusal, outputTokens } = await asks.ask(
        {
          runId: run.id,
          epoch: BigInt(placed.epoch),
          stepId,
          attempt: Number(call.key.slice(colon + 1)),
          tokens: BigInt(tokensIn + wanted),
          outputTokens: BigInt(wanted),
          lastEvent: BigInt(placed.last_event),
          costNanoUsd: BigInt(costOf?.(tokensIn, wanted, true) ?? 0),
          inputCostNanoUsd: BigInt(costOf?.(tokensIn, 0, true) ?? 0),
          model: model.id,
          tool: '',
          unpriced: costOf === null,
        },
        call.signal,
      )
      if (refusal !== '') throw new RunFailure('budget_exceeded', refusal, { stepId })
      const maxOutputTokens = Math.min(wanted, Number(outputTokens))
      // What was granted is for one model: another one has to be granted anew, in the next attempt.
      const own = { ...call, pricedOnly: costOf !== null, standIn: async () => undefined }
      const answer = await model.ask({ ...request, maxOutputTokens }, own)
      return answer.stop === 'length' && maxOutputTokens < wanted ? { ...answer, cappedByBudget: true } : answer
    },
  }
}

/** An action whose calls a day are limited: each is granted by the control plane first, which counts those of all nodes. */
function grantedTool(db: Db, asks: Pick<BudgetRequests, 'ask'>, store: Pick<BudgetStore, 'get'>): UseTool {
  return async ({ runId, agentId, stepId, tool }, signal) => {
    const budget = await store.get(agentId)
    if (budget === undefined || !Object.hasOwn(budget.toolLimits, tool)) return
    const found = await db.execute({ sql: 'select epoch from tunnel_runs where run_id = ?', args: [runId] })
    const [{ epoch = 0 } = {}] = rowsOf<{ epoch: number }>(found)
    const { refusal } = await asks.ask({ ...OF_NO_MODEL, runId, epoch: BigInt(epoch), stepId, tool }, signal)
    if (refusal !== '') throw new StepFailure('tool_limit', refusal)
  }
}

const OF_NO_MODEL = {
  attempt: 0,
  tokens: 0n,
  outputTokens: 0n,
  lastEvent: 0n,
  costNanoUsd: 0n,
  inputCostNanoUsd: 0n,
  model: '',
  unpriced: false,
}

/**
 * The runs that a run on a node calls. Its control plane makes them, which knows versions, budgets and how deep it may go, and orders
 * them here; until then it stands in the store that they were asked for, in the commit that asks.
 */
function requestSubagents(
  { poolKeys, reportSoon, reportsAs }: Pick<WorkerIdentity, 'poolKeys' | 'reportSoon' | 'reportsAs'>,
  { db, runs, sha256 }: { db: Db; runs: Pick<RunStore, 'get'>; sha256: Sha256 },
) {
  return (parent: { id: string; epoch: number }): ChildRuns => ({
    async start({ id, agentName, input }) {
      const text = canonicalize(input)
      const box = toBase64(await sealTo(poolKeys.publicKey, utf8(text), inputAad(id)))
      const ask: Report = {
        t: 'child',
        run: parent.id,
        child: id,
        agent: agentName,
        box,
        hash: sha256Hex(text, sha256),
        length: text.length,
      }
      const owns = `exists (select 1 from runs where id = ?2 and epoch = ?3 and status = 'running')
        and not exists (select 1 from tunnel_children where child_id = ?1)`
      await db.write([
        {
          sql: `insert into tunnel_outbox (frame, node_id) select ?4, ?5 where ${owns}`,
          args: [id, parent.id, parent.epoch, JSON.stringify(ask), reportsAs],
        },
        {
          sql: `insert into tunnel_children (child_id, parent_id) select ?1, ?2 where ${owns}`,
          args: [id, parent.id, parent.epoch],
        },
      ])
      reportSoon(true)
      return 'started'
    },

    // The control plane knows them all, and ends them.
    abandoned: () => [],

    async look(id) {
      const run = await runs.get(id)
      if (run) {
        const { status, output, error } = run
        return { status, ...(output && { output }), ...(error && { error }) }
      }
      const sql = 'select error_code, error_message from tunnel_children where child_id = ?'
      const found = await db.execute({ sql, args: [id] })
      const [row] = rowsOf<Pick<RowOf<typeof tunnelChildren>, 'error_code' | 'error_message'>>(found)
      if (row === undefined) return undefined
      if (row.error_code === null) return { status: 'queued' }
      return { status: 'refused', error: { code: row.error_code, message: row.error_message! } }
    },
  })
}
