import type { InStatement, ResultSet } from '@libsql/client/web'
import { boundedSum } from '../../../shared/money/money.ts'
import { type Db, objectIn, type RowOf, rowsOf } from '../../../shared/sql/db.ts'
import { isFailedCondition } from '../../../shared/sql/db-fault.ts'
import { insertRows } from '../../../shared/sql/insert-rows.ts'
import { jsonRows, nanoPlus } from '../../../shared/sql/sql-values.ts'
import type { Isolation } from '../../../shared/wire/runtime/isolation.ts'
import { isTerminal } from '../../../shared/wire/runtime/run.ts'
import { POISONED, RATE_LIMIT } from '../../execution/claim-statement.ts'
import type { budgets, remoteRuns } from '../../schema/tables.ts'
import { releaseHolds } from './remote-holds.ts'
import { REMOTE_RUN_COLUMNS, type RemoteRun, type RunPlace, type StoredRemoteRun, toRemoteRun } from './remote-run.ts'

const FAR = `select ${REMOTE_RUN_COLUMNS} from remote_runs f join runs r on r.id = f.run_id`
const OPEN = "status in ('queued', 'running', 'waiting')"

export interface NewRemoteRun {
  id: string
  tenantId: string
  pool: string
  pinned: string | undefined
  isolation: Isolation
  createdMs: number
  dispatchByMs: number
  inputSealed: Uint8Array | null
  /** Its input is sealed for this schedule and not for the run. */
  inputSchedule?: string | undefined
  inputHash: string
  genesis: string
  /** The node that it is offered to at once, with the order that waits for that node; absent: it is queued. */
  offer?: { nodeId: string; frame: Uint8Array } | undefined
}

/** One event as the node told it. */
export interface RemoteEvent {
  runId: string
  seq: number
  kind: string
  stepId: string
  attempt: number
  at: string
  hash: string
  tokensIn: number
  tokensOut: number
  costNano: number
  unpricedCalls: number
  /** Cut off before a word of its answer: what is held for it stays until the run is closed, and counts as uncertain. */
  cut: boolean
  model: string | undefined
}

const insertRemoteEvents = insertRows(
  'remote_events',
  { run_id: 'text', seq: 'integer', events: 'text' },
  { after: 'on conflict do nothing' },
)

const TOLD = `update remote_runs set event_seq = n.value ->> 1, tip = n.value ->> 2 from json_each(?) as n
  where remote_runs.run_id = n.value ->> 0`

const MOVED = `update runs set status = n.value ->> 1, started_ms = coalesce(started_ms, n.value ->> 2),
  updated_ms = n.value ->> 2, parked = null, parked_until_ms = null, tokens_in = tokens_in + (n.value ->> 3), tokens_out = tokens_out + (n.value ->> 4),
  cost_nano = ${nanoPlus('cost_nano', '(n.value ->> 5)')}, model = coalesce(n.value ->> 6, model),
  unpriced_calls = unpriced_calls + (n.value ->> 7)
  from json_each(?) as n where runs.id = n.value ->> 0 and runs.${OPEN}`

const insertUsage = insertRows(
  'usage_days',
  {
    agent_id: 'text',
    day: 'text',
    model: 'text',
    tenant_id: 'text',
    agent_name: 'text',
    tokens_in: 'integer',
    tokens_out: 'integer',
    cost_nano: 'integer',
    unpriced_calls: 'integer',
  },
  {
    after: `on conflict (agent_id, day, model) do update set tokens_in = tokens_in + excluded.tokens_in,
      tokens_out = tokens_out + excluded.tokens_out, cost_nano = ${nanoPlus('cost_nano', 'excluded.cost_nano')},
      unpriced_calls = unpriced_calls + excluded.unpriced_calls`,
  },
)

export interface Moved {
  runId: string
  status: 'running' | 'waiting'
  atMs: number
  tokensIn: number
  tokensOut: number
  costNano: number
  unpricedCalls: number
  model: string | undefined
}

type InputRow = Pick<RowOf<typeof remoteRuns>, 'run_id' | 'input_schedule'> & { input_sealed: ArrayBuffer }

/** What an agent's budget means for its runs on nodes. */
export interface RunLimit {
  costNano: number | undefined
  hard: boolean
  /** It has a hard limit of a day, so each call is asked for. */
  ofDay: boolean
  /** Calls of actions a day, where the budget is hard: each is asked for. */
  tools: Record<string, bigint>
}

const NO_LIMIT: RunLimit = { costNano: undefined, hard: false, ofDay: false, tools: {} }

type LimitRow = Pick<RowOf<typeof budgets>, 'agent_id' | 'cost_nano_run' | 'hard_fail' | 'tool_limits'> & {
  of_day: number
}

const remoteRunsIn = (found: Pick<ResultSet, 'rows'>): RemoteRun[] => rowsOf<StoredRemoteRun>(found).map(toRemoteRun)

/** The order to execute a run, for the node that it is offered to. */
const order = (id: string, epoch: number, nodeId: string, frame: Uint8Array): InStatement => ({
  sql: `insert into node_frames (node_id, frame) select ?1, ?2
    where exists (select 1 from remote_runs where run_id = ?3 and node_id = ?1 and epoch = ?4 and state = 'offered')`,
  args: [nodeId, frame, id, epoch],
})

/** The statements about runs on nodes, each for a transaction of its caller. */
const remoteRunStatements = {
  /** For the transaction that makes the run; nothing where the run was not made. */
  insert: ({ offer, ...run }: NewRemoteRun): InStatement[] => [
    {
      sql: `insert into remote_runs (run_id, tenant_id, pool, isolation, state, created_ms, dispatch_by_ms, input_sealed, input_hash, tip,
          pinned, input_schedule, node_id)
        select ?1, ?2, ?3, ?4, ?12, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?13 where exists (select 1 from runs where id = ?1 and tenant_id = ?2)
        on conflict do nothing`,
      args: [
        ...[run.id, run.tenantId, run.pool, run.isolation, run.createdMs, run.dispatchByMs, run.inputSealed],
        ...[run.inputHash, run.genesis, run.pinned ?? null, run.inputSchedule ?? null],
        ...[offer ? 'offered' : 'queued', offer?.nodeId ?? null],
      ],
    },
    ...(offer ? [order(run.id, 1, offer.nodeId, offer.frame)] : []),
  ],

  later: (id: string, byMs: number): InStatement => ({
    sql: 'update remote_runs set dispatch_by_ms = ? where run_id = ? and dispatch_by_ms is not null',
    args: [byMs, id],
  }),

  /** Hands a queued run to a node; `frame` waits for the node from the same commit on. */
  offer({ id, epoch }: RemoteRun, nodeId: string, frame: Uint8Array): InStatement[] {
    return [
      {
        sql: `update remote_runs set state = 'offered', node_id = ?, epoch = ? where run_id = ? and state = 'queued'`,
        args: [nodeId, epoch, id],
      },
      {
        sql: `update runs set node_id = ?1, epoch = ?2 where id = ?3
          and exists (select 1 from remote_runs where run_id = ?3 and node_id = ?1 and state = 'offered')`,
        args: [nodeId, epoch, id],
      },
      order(id, epoch, nodeId, frame),
    ]
  },

  /** The node has them, durably: the sealed inputs are not needed here any more. */
  accepted: (ids: readonly string[]): InStatement => ({
    sql: `update remote_runs set state = 'accepted', input_sealed = null, dispatch_by_ms = null
      where run_id in (select value from json_each(?)) and state = 'offered'`,
    args: [JSON.stringify(ids)],
  }),

  refused: (id: string): InStatement[] => [
    {
      sql: `update remote_runs set state = 'queued', node_id = null, epoch = epoch + 1 where run_id = ? and state = 'offered'`,
      args: [id],
    },
    {
      sql: `update runs set node_id = null, epoch = epoch + 1 where id = ? and exists (select 1 from remote_runs where run_id = runs.id and state = 'queued')`,
      args: [id],
    },
  ],

  /** What was streamed, and what was used by it; `day` is the one that usage counts for. */
  reported(events: readonly RemoteEvent[], runs: ReadonlyMap<string, RemoteRun>, day: string): InStatement[] {
    if (events.length === 0) return []
    return [...insertRemoteEvents.statements(reported(events)), ...releaseHolds(events), ...usage(events, runs, day)]
  },

  /** How far the runs have come whose journals go on. */
  moved: (tips: readonly RemoteRun[], moved: readonly Moved[]): InStatement[] => [
    ...(tips.length === 0
      ? []
      : [{ sql: TOLD, args: [JSON.stringify(tips.map(({ id, eventSeq, tip }) => [id, eventSeq, tip]))] }]),
    ...(moved.length === 0
      ? []
      : [
          {
            sql: MOVED,
            args: [
              jsonRows(
                moved.map(one => [
                  ...[one.runId, one.status, one.atMs, one.tokensIn, one.tokensOut, one.costNano, one.model ?? null],
                  one.unpricedCalls,
                ]),
              ),
            ],
          },
        ]),
  ],

  /** Its node has set it aside, or lets it go on. */
  parked: (id: string, reason: typeof POISONED | '', atMs: number): InStatement =>
    reason === ''
      ? {
          sql: `update runs set status = 'running', parked = null, updated_ms = ? where id = ? and parked = '${POISONED}' and ${OPEN}`,
          args: [atMs, id],
        }
      : {
          sql: `update runs set status = 'waiting', parked = ?, updated_ms = ? where id = ? and parked is not ?1 and ${OPEN}`,
          args: [reason, atMs, id],
        },

  /** It waits for a rate limit, until its next event. */
  limited: (id: string, untilMs: number, atMs: number): InStatement => ({
    sql: `update runs set status = 'running', parked = '${RATE_LIMIT}', parked_until_ms = ?2, started_ms = coalesce(started_ms, ?3),
      updated_ms = ?3 where id = ?1 and status in ('queued', 'running')`,
    args: [id, untilMs, atMs],
  }),

  /** Questions whose steps are over, and whose time was when they ended. */
  expired: (answered: readonly { runId: string; stepId: string; atMs: number }[]): InStatement[] =>
    answered.length === 0
      ? []
      : [
          {
            sql: `update approvals set status = 'expired', decided_ms = n.value ->> 'atMs' from json_each(?) as n
              where run_id = n.value ->> 'runId' and step_id = n.value ->> 'stepId' and status = 'pending' and expires_ms <= n.value ->> 'atMs'`,
            args: [JSON.stringify(answered)],
          },
        ],

  ask: (run: RemoteRun, ask: { id: string; stepId: string; reason: string; expiresMs: number; nowMs: number }) => ({
    sql: `insert into approvals
        (id, tenant_id, run_id, agent_name, step_id, round, status, reason, prompt, created_ms, expires_ms)
      select ?1, ?2, ?3, ?4, ?5, (select count(*) + 1 from approvals where run_id = ?3 and step_id = ?5), 'pending', ?6, '', ?7, ?8
      where exists (select 1 from runs where id = ?3 and ${OPEN}) on conflict do nothing`,
    args: [ask.id, run.tenantId, run.id, run.agentName, ask.stepId, ask.reason, ask.nowMs, ask.expiresMs],
  }),

  /**
   * For the transaction of what was decided about a run: fails it, with `isMoved`, where the run is not as it was when that was decided. Another
   * control plane on the same store may have given it to a node, or ended it.
   */
  asRead: ({ id, state, nodeId, status }: RemoteRun): InStatement => ({
    sql: `insert into remote_runs (run_id, tenant_id) select '', null where not exists (select 1 from remote_runs f join runs r on r.id = f.run_id
      where f.run_id = ? and f.state = ? and f.node_id is ? and (r.${OPEN}) = ?)`,
    args: [id, state, nodeId ?? null, isTerminal(status) ? 0 : 1],
  }),

  /** The same of whether each of them has ended. */
  asOpen: (runs: readonly { id: string; open: boolean }[]): InStatement => ({
    sql: `insert into remote_runs (run_id, tenant_id) select '', null where exists (select 1 from json_each(?) as n
      where not exists (select 1 from runs where id = n.value ->> 0 and (${OPEN}) = n.value ->> 1))`,
    args: [JSON.stringify(runs.map(({ id, open }) => [id, open ? 1 : 0]))],
  }),

  state: (id: string, state: RemoteRun['state']): InStatement => ({
    sql: 'update remote_runs set state = ? where run_id = ?',
    args: [state, id],
  }),

  /** Everything of a run but its usage and its receipt. */
  removal: (id: string): InStatement[] => [
    { sql: 'delete from remote_events where run_id = ?', args: [id] },
    { sql: 'delete from remote_runs where run_id = ?', args: [id] },
  ],
}

export type RemoteRunStore = ReturnType<typeof remoteRunStore>

/** The runs on nodes as they are read, with the statements that change them. */
export function remoteRunStore(db: Db) {
  return {
    ...remoteRunStatements,

    async get(id: string): Promise<RemoteRun | undefined> {
      return remoteRunsIn(await db.execute({ sql: `${FAR} where f.run_id = ?`, args: [id.toWellFormed()] }))[0]
    },

    /** Where it is, and whose: enough to ask its node. */
    async locate(id: string): Promise<RunPlace | undefined> {
      const found = await db.execute({
        sql: `select r.tenant_id, r.status, f.node_id, f.state, f.event_seq from remote_runs f join runs r on r.id = f.run_id
          where f.run_id = ?`,
        args: [id.toWellFormed()],
      })
      const [row] = rowsOf<Pick<StoredRemoteRun, 'tenant_id' | 'status' | 'node_id' | 'state' | 'event_seq'>>(found)
      if (row === undefined) return undefined
      const { tenant_id: tenantId, status, node_id: nodeId, state, event_seq: eventSeq } = row
      return { id, tenantId, status, nodeId: nodeId ?? undefined, state, eventSeq }
    },

    async these(ids: readonly string[]): Promise<Map<string, RemoteRun>> {
      const found = await db.execute({
        sql: `${FAR} where f.run_id in (select value from json_each(?))`,
        args: [JSON.stringify(ids)],
      })
      return new Map(remoteRunsIn(found).map(run => [run.id, run]))
    },

    /** How many questions these have. */
    async asked(ids: readonly string[]): Promise<Map<string, number>> {
      const sql =
        'select run_id, count(*) as n from approvals where run_id in (select value from json_each(?)) group by run_id'
      const found = await db.execute({ sql, args: [JSON.stringify(ids)] })
      return new Map(rowsOf<{ run_id: string; n: number }>(found).map(({ run_id, n }) => [run_id, n]))
    },

    /** What waits for that node, or for any of its pool, with one of these isolations; oldest first. */
    async queued(
      { nodeId, tenantId, pool }: { nodeId: string; tenantId: string; pool: string },
      isolations: readonly Isolation[],
      most: number,
      /** Only those that a run waits for which is at that node. */
      onlyChildren: boolean,
    ): Promise<RemoteRun[]> {
      const found = await db.execute({
        sql: `${FAR} where f.state = 'queued' and f.tenant_id = ? and f.pool = ?
          and (f.pinned is null or f.pinned = ?) and f.isolation in (select value from json_each(?))
          and (? = 0 or r.parent_run_id is not null) order by f.created_ms, f.run_id limit ?`,
        args: [tenantId, pool, nodeId, JSON.stringify(isolations), onlyChildren ? 1 : 0, most],
      })
      return remoteRunsIn(found)
    },

    async anyQueued(): Promise<boolean> {
      return (await db.execute("select 1 from remote_runs where state = 'queued' limit 1")).rows.length > 0
    },

    runLimits: (agentIds: readonly string[]) => runLimits(db, agentIds),

    /** Of each agent that has open runs on a node, what its budget allows now. */
    async limitsOn(nodeId: string): Promise<Map<string, RunLimit>> {
      const found = await db.execute({
        sql: `select distinct r.agent_id from remote_runs f join runs r on r.id = f.run_id
          where f.node_id = ? and f.state in ('offered', 'accepted')`,
        args: [nodeId],
      })
      const agentIds = rowsOf<{ agent_id: string }>(found).map(row => row.agent_id)
      if (agentIds.length === 0) return new Map()
      const limits = await runLimits(db, agentIds)
      return new Map(agentIds.map(id => [id, limits.get(id) ?? NO_LIMIT]))
    },

    inputsOf: (ids: readonly string[]) => inputsOf(db, ids),

    async overdue(nowMs: number, most: number): Promise<RemoteRun[]> {
      const sql = `${FAR} where f.dispatch_by_ms <= ? and f.state in ('queued', 'offered') order by f.dispatch_by_ms limit ?`
      return remoteRunsIn(await db.execute({ sql, args: [nowMs, most] }))
    },

    async ending(most: number): Promise<RemoteRun[]> {
      const sql = `${FAR} where f.ending is not null order by f.run_id limit ?`
      return remoteRunsIn(await db.execute({ sql, args: [most] }))
    },

    /** What a node has and has not ended. */
    async openOn(nodeId: string): Promise<RemoteRun[]> {
      const sql = `${FAR} where f.node_id = ? and f.state in ('offered', 'accepted', 'ending')`
      return remoteRunsIn(await db.execute({ sql, args: [nodeId] }))
    },

    /** How many runs each node works on or was offered; those that wait for another run of their node do nothing. */
    async load(): Promise<Map<string, number>> {
      const found = await db.execute(
        `select f.node_id, count(*) as runs from remote_runs f join runs r on r.id = f.run_id
          where f.node_id is not null and f.state in ('offered', 'accepted') and r.status in ('queued', 'running')
            and not exists (select 1 from runs c where c.parent_run_id = r.id and c.${OPEN})
          group by f.node_id`,
      )
      return new Map(rowsOf<{ node_id: string; runs: number }>(found).map(row => [row.node_id, row.runs]))
    },

    async any(): Promise<boolean> {
      const sql =
        'select 1 where exists (select 1 from nodes where enrolled_ms is not null) or exists (select 1 from remote_runs)'
      return (await db.execute(sql)).rows.length > 0
    },
  }
}

/** A run was not any more as it was when something was decided about it. */
export function isMoved(error: unknown): boolean {
  return isFailedCondition(error, 'remote_runs.tenant_id')
}

/** What a run of each of these agents may cost, where its budget says so. */
async function runLimits(db: Db, agentIds: readonly string[]): Promise<Map<string, RunLimit>> {
  const found = await db.execute({
    sql: `select agent_id, cost_nano_run, hard_fail, iif(hard_fail = 1 and json_valid(tool_limits), tool_limits, '{}') as tool_limits, hard_fail = 1 and coalesce(cost_nano_day, tokens_day) is not null as of_day
      from budgets where agent_id in (select value from json_each(?))`,
    args: [JSON.stringify([...new Set(agentIds)])],
  })
  return new Map(
    rowsOf<LimitRow>(found).map(row => [
      row.agent_id,
      {
        costNano: row.cost_nano_run ?? undefined,
        hard: row.hard_fail === 1,
        ofDay: row.of_day === 1,
        tools: Object.fromEntries(
          Object.entries(objectIn<Record<string, number>>(row.tool_limits)).map(([tool, most]) => [tool, BigInt(most)]),
        ),
      },
    ]),
  )
}

/** What these runs were given, as it was sealed for them. */
async function inputsOf(db: Db, ids: readonly string[]) {
  const found = await db.execute({
    sql: `select run_id, input_sealed, input_schedule from remote_runs
      where run_id in (select value from json_each(?)) and input_sealed is not null`,
    args: [JSON.stringify(ids)],
  })
  return new Map(
    rowsOf<InputRow>(found).map(({ run_id, input_sealed, input_schedule }) => [
      run_id,
      { sealed: new Uint8Array(input_sealed), schedule: input_schedule ?? undefined },
    ]),
  )
}

/** A row for each run, since they were reported together. */
function reported(events: readonly RemoteEvent[]) {
  const rows = new Map<string, { seq: number; list: unknown[][] }>()
  for (const { runId, seq, kind, stepId, attempt, at, hash, tokensIn, tokensOut, costNano } of events) {
    const row = rows.get(runId) ?? { seq, list: [] }
    row.seq = seq
    row.list.push([kind, stepId, attempt, at, hash, tokensIn, tokensOut, costNano])
    rows.set(runId, row)
  }
  return [...rows].map(([run_id, { seq, list }]) => ({ run_id, seq, events: JSON.stringify(list) }))
}

/** What these events used, by agent and model. */
function usage(events: readonly RemoteEvent[], runs: ReadonlyMap<string, RemoteRun>, day: string): InStatement[] {
  const rows = new Map<string, Parameters<typeof insertUsage.statement>[0][number]>()
  for (const { runId, model = '', tokensIn, tokensOut, costNano, unpricedCalls } of events) {
    const run = runs.get(runId)
    if (run === undefined || tokensIn + tokensOut + costNano === 0) continue
    const { agentId, agentName, tenantId } = run
    const key = `${agentId} ${model}`
    const { tokens_in = 0, tokens_out = 0, cost_nano = 0, unpriced_calls = 0 } = rows.get(key) ?? {}
    rows.set(key, {
      agent_id: agentId,
      day,
      model,
      tenant_id: tenantId,
      agent_name: agentName,
      tokens_in: Number(tokens_in) + tokensIn,
      tokens_out: Number(tokens_out) + tokensOut,
      cost_nano: boundedSum(Number(cost_nano), costNano),
      unpriced_calls: Number(unpriced_calls) + unpricedCalls,
    })
  }
  return insertUsage.statements([...rows.values()])
}
