import type { InStatement } from '@libsql/client/web'
import { ApiError } from '../../../shared/http/api-error.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import type { Log } from '../../../shared/log/log.ts'
import { utf8 } from '../../../shared/sign/bytes.ts'
import type { Signer } from '../../../shared/sign/ed25519.ts'
import { canonicalize } from '../../../shared/sign/jcs.ts'
import { type Sha256, sha256Hex } from '../../../shared/sign/sha256.ts'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { dbFault } from '../../../shared/sql/db-fault.ts'
import { createSlots, type Slots } from '../../../shared/time/slots.ts'
import type { AgentLimit, Assign, ChildRefused, ControlFrame, SecretPut } from '../../../shared/tunnel/gateway.gen.ts'
import { type BoxKeys, openSealed } from '../../../shared/tunnel/sealed-payload.ts'
import type { ApprovalDecision } from '../../../shared/wire/runtime/approval.ts'
import { UUID } from '../../../shared/wire/runtime/conventions.ts'
import { withoutTexts } from '../../agents/texts.ts'
import type { ApprovalStore } from '../../approvals/store.ts'
import { resumption } from '../../execution/claim-statement.ts'
import type { Engine } from '../../execution/engine.ts'
import type { SealedEvent } from '../../execution/journal/event.ts'
import { lastingValue } from '../../lasting-value.ts'
import { OPEN_OF_AGENT } from '../../runs/end-runs.ts'
import { copiedEvents, stepsToCopy } from '../../runs/fork.ts'
import type { RequestsOfSteps } from '../../runs/step-requests.ts'
import { journalOutline } from '../../runs/steps.ts'
import type { NewRun, RunStore } from '../../runs/store.ts'
import type { SessionStore } from '../../sessions/store.ts'
import type { TurnInput } from '../../sessions/turn-input.ts'
import type { Records } from '../../vault/records.ts'
import {
  decisionAad,
  inputAad,
  type ManifestEnvelope,
  MODEL_SETTINGS,
  manifestAad,
  scheduleInputAad,
  signalAad,
  textsOpener,
} from '../sealed-payloads.ts'
import { answerReads } from './answer-reads.ts'
import type { BudgetRequests } from './budget-requests.ts'
import { type Report, reportRows } from './report-rows.ts'
import { workerReports } from './reports.ts'
import { type StoreCredentialsDeps, storeCredentials } from './store-credentials.ts'
import { takeOverRuns } from './take-over-runs.ts'

/** A piece of the text of a turn, as it is said; `seq` 1 begins the text anew. */
export interface Piece {
  sessionId: string
  turnId: string
  seq: number
  delta: string
}

/** Who a runtime is when it executes for a control plane elsewhere. */
export interface WorkerIdentity {
  nodeId: string
  tenantId: string
  pool: string
  poolKeys: BoxKeys
  /** 32 bytes, under which it seals credentials and what its runs are given and say. */
  sealKey: Uint8Array<ArrayBuffer>
  signer: Signer
  /** Its id, where other nodes have the same store, and null where it has one of its own. */
  reportsAs: string | null
  /** Something was committed that the control plane must know; `soon`: a caller waits for it. */
  reportSoon: (soon: boolean) => void
  /** A piece of what is said in a turn. */
  said: (piece: Piece) => void
  /** Nothing is executed before: the control plane has said which runs are over, or is away. */
  mayExecute?: Promise<void>
  /** `nodeWorker`, which only a node loads. */
  make: (identity: WorkerIdentity, deps: WorkerDeps) => NodeWorker
}

export interface WorkerDeps {
  db: Db
  sha256: Sha256
  records: Records
  runs: RunStore
  engine: Pick<Engine, 'wake' | 'end' | 'active'>
  approvals: ApprovalStore
  requests: RequestsOfSteps
  sessions: Pick<SessionStore, 'turn' | 'messages' | 'stop' | 'remove' | 'orderedTurn'>
  now: () => Date
  log: Log
  /** Of the journal that a fork begins with. Default: no limit. */
  copiedBytesAtMost?: number | undefined
  dayOf: (ms: number) => string
  /** Its questions whether a call may be made. */
  asks: BudgetRequests
  /** Where runs here look for what they are given beside their input. */
  keeping: Pick<StoreCredentialsDeps, 'secrets' | 'providers' | 'checkProvider' | 'connectors' | 'modelSettings'>
}

/** A runtime as the node end of a tunnel sees it: what to do with what comes, and what to tell. */
export type NodeWorker = ReturnType<typeof nodeWorker>

const decoder = new TextDecoder()
type Forked = Pick<Assign, 'forkedRun' | 'forkedStep'>

/** The node's side of a tunnel: who it is and what it works with. */
type NodeSide = WorkerIdentity & WorkerDeps & { forks: Slots }

export function nodeWorker(identity: WorkerIdentity, deps: WorkerDeps) {
  const { db, sha256, engine, now, log, sessions } = deps
  const { tenantId, pool, signer, nodeId, reportsAs, reportSoon } = identity
  const side: NodeSide = { ...identity, ...deps, forks: createSlots(1) }
  const limits = currentLimits(side)

  const keep = storeCredentials({ ...deps.keeping, tenantId, pool, opened: (box, place) => opened(side, box, place) })

  async function credential(put: SecretPut): Promise<void> {
    const error = await keep(put)
    if (error !== '') log.error('a credential of the control plane cannot be kept', { ref: put.ref, reason: error })
    if (put.remove || put.ref === MODEL_SETTINGS) return
    const report: Report = { t: 'credential', ref: put.ref, error }
    await db.write([tell(side, report)])
    reportSoon(true)
  }

  async function one({ body }: ControlFrame): Promise<void> {
    switch (body.case) {
      case 'assign':
        return (body.value.forkedRun === '' ? assign : assignFork)(side, body.value).finally(limits.forget)
      case 'cancel':
        return cancel(side, body.value.runId, body.value.reason, body.value.remove)
      case 'approval':
        return decide(
          side,
          body.value.runId,
          body.value.approvalId,
          body.value.decision === 'approve',
          body.value.detailSealed,
        )
      case 'secretPut':
        return credential(body.value)
      case 'childRefused':
        return refuseChild(side, body.value)
      case 'sessionStop':
        return stopSession(side, body.value.sessionId, body.value.remove)
      case 'signal':
        return signal(side, body.value.runId, body.value.valueSealed)
      default:
        return undefined
    }
  }

  /** What no store takes now it takes never: it is left, so that what stands behind it is done. */
  async function oneOrLeft(frame: ControlFrame): Promise<void> {
    try {
      await one(frame)
    } catch (error) {
      if (!isForGood(error)) throw error
      log.error('an order of the control plane cannot be carried out and is left', { error, order: frame.body.case })
      if (frame.body.case !== 'assign') return
      const { runId, epoch } = frame.body.value
      await refuseOrder(side, runId, 'this node cannot keep it', epoch)
    }
  }

  const { pendingReports, acknowledged } = workerReports({ db, sha256, records: deps.records, signer, reportsAs })
  const others = reportsAs === null ? undefined : takeOverRuns(reportsAs, db)

  return {
    nodeId,
    asks: deps.asks,
    active: () => engine.active,

    /** Which store this is, the same for all who have it. */
    storeId: lastingValue(db, 'store_id', () => crypto.randomUUID()),

    /** With each heartbeat: the nodes that share the store see this one, and it sees them. */
    async beat(lostMs: number): Promise<void> {
      if (others && (await others.beat(now().getTime(), lostMs))) reportSoon(true)
    },

    limits: limits.keep,

    /** The control plane says, before anything is executed, that these are over. */
    async over(runIds: readonly string[]): Promise<void> {
      for (const id of runIds) {
        log.warn('a run is over at the control plane and is not gone on with', { runId: id })
        await engine.end(id, { code: 'cancelled' })
      }
    },

    /** What the control plane ordered, in order; orders for new runs that stand together share a commit. */
    async handle(frames: readonly ControlFrame[]): Promise<void> {
      let together: Promise<void>[] = []
      for (const frame of frames) {
        if (frame.body.case === 'assign') {
          together.push(oneOrLeft(frame))
          continue
        }
        await Promise.all(together)
        together = []
        await oneOrLeft(frame)
      }
      await Promise.all(together)
    },

    pendingReports,
    acknowledged,

    held: () => heldRuns(db),

    /** Answers what only this node knows. */
    read: answerReads({
      db,
      records: deps.records,
      runs: deps.runs,
      approvals: deps.approvals,
      sessions,
      requests: deps.requests,
      identity,
      opened: (box, place) => opened(side, box, place),
    }),
  }
}

/** The fault is in what was to be written, and not in the store: the writing thread gives such an error no code. */
function isForGood(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return dbFault(error) === 'statement' && (code === undefined || code === '' || code === 'SQLITE_CONSTRAINT')
}

/** The runs that this node has something to do or to tell about. */
async function heldRuns(db: Db) {
  const found = await db.execute(
    `select t.run_id, t.epoch, r.status, (select coalesce(max(seq), 0) from events where run_id = t.run_id) as seq
      from tunnel_runs t join runs r on r.id = t.run_id
      where r.finished_ms is null or t.run_id in (select frame ->> 'run' from tunnel_outbox)`,
  )
  return rowsOf<{ run_id: string; epoch: number; status: string; seq: number }>(found).map(row => ({
    runId: row.run_id,
    epoch: BigInt(row.epoch),
    status: row.status,
    lastEvent: BigInt(row.seq),
  }))
}

/** Forks are made one at a time: what is copied is in memory several times on its way into the store. */
async function assignFork(side: NodeSide, order: Assign): Promise<void> {
  const release = await side.forks.take()
  try {
    await assign(side, order)
  } finally {
    release()
  }
}

/** From the commit that writes it on, the run is this node's; an order that comes twice makes one run. */
async function assign(side: NodeSide, { runId, epoch, agentVersionId, ...sent }: Assign): Promise<void> {
  const createdMs = Number(sent.createdUnixMs)
  let order: { envelope: ManifestEnvelope; input: unknown }
  try {
    // They are names of files here.
    if (!UUID.test(runId) || !(sent.sessionId === '' || UUID.test(sent.sessionId))) throw new Error('its id is none')
    order = await openOrder(side, { runId, agentVersionId, ...sent })
  } catch (error) {
    return refuseOrder(side, runId, error instanceof Error ? error.message : 'it does not open', epoch)
  }
  const { envelope, input } = order
  const { agentId, agentName, versionId, number, manifest, manifestHash } = envelope
  const box = sent.textsSealed.length > 0 ? sent.textsSealed : null
  const copied = sent.forkedRun === '' ? undefined : await copiesFor(side, runId, createdMs, sent)
  if (typeof copied === 'string') return refuseOrder(side, runId, copied, epoch)
  await side.runs.create({
    ...copied?.begin,
    id: runId,
    tenantId: side.tenantId,
    agentName,
    agentId,
    versionId,
    createdMs,
    // By the clock that says here what is due: it may be behind the one of the control plane.
    dueMs: Math.min(createdMs, side.now().getTime()),
    labels: '{}',
    ...begunBy(sent),
    input: canonicalize(input),
    isolation: manifest.isolation,
    day: side.dayOf(createdMs),
    also: [
      {
        sql: `insert into tenants (id, name, created_ms) values (?, ?, ?) on conflict do nothing`,
        args: [side.tenantId, JSON.stringify(side.tenantId), createdMs],
      },
      {
        // Without a name that anything here could look up: agents are made at the control plane.
        sql: `insert into agents (id, tenant_id, name, labels, current_version_id, versions, created_ms, deleted_ms)
          values (?, ?, ?, '{}', ?, 1, ?, ?) on conflict do nothing`,
        args: [agentId, side.tenantId, agentName, versionId, createdMs, createdMs],
      },
      {
        // Texts that came sealed to the pool stay so.
        sql: `insert into agent_versions
            (id, tenant_id, agent_id, number, manifest, manifest_hash, created_ms, created_by, box, box_pool)
          values (?, ?, ?, ?, ?, ?, ?, '', ?, ?) on conflict do nothing`,
        args: [
          ...[versionId, side.tenantId, agentId, number, JSON.stringify(box ? withoutTexts(manifest) : manifest)],
          ...[manifestHash, createdMs, box, box && side.pool],
        ],
      },
      {
        sql: `insert into tunnel_runs (run_id, epoch, node_id, ask_budget) values (?1, ?2, ?3, ?4)
          on conflict do update set epoch = ?2, ask_budget = ?4`,
        args: [runId, Number(epoch), side.reportsAs, sent.askBudget ? 1 : 0],
      },
      limitOf(side, agentId, sent),
      ...(sent.sessionId === ''
        ? []
        : side.sessions.orderedTurn(
            { id: sent.sessionId, tenantId: side.tenantId, agentName, agentId, versionId },
            runId,
            (input as TurnInput).systemHint,
            createdMs,
          )),
      tell(side, { t: 'accept', run: runId, ok: true, reason: '' }),
      ...(copied?.tell ?? []),
    ],
  })
  // No caller waits for that, and a short run ends in the same report.
  side.reportSoon(false)
}

async function refuseOrder(side: NodeSide, runId: string, reason: string, epoch: bigint): Promise<void> {
  await side.db.write([tell(side, { t: 'accept', run: runId, ok: false, reason, epoch: Number(epoch) })])
  side.reportSoon(true)
}

/** The manifest and the input of a run that was sent here; throws where they do not open or are not what was published. */
async function openOrder(
  side: NodeSide,
  {
    runId,
    agentVersionId,
    inputSchedule,
    ...sealed
  }: Pick<Assign, 'runId' | 'agentVersionId' | 'inputSchedule' | 'manifestSealed' | 'inputSealed' | 'textsSealed'>,
) {
  const envelope = await opened<ManifestEnvelope>(side, sealed.manifestSealed, manifestAad(agentVersionId))
  const place = inputSchedule === '' ? inputAad(runId) : scheduleInputAad(inputSchedule)
  const input = await opened<unknown>(side, sealed.inputSealed, place)
  if (sealed.textsSealed.length > 0) {
    const texts = await textsOpener(side.poolKeys)(agentVersionId, sealed.textsSealed)
    envelope.manifest = { ...envelope.manifest, ...texts }
  }
  if (sha256Hex(utf8(canonicalize(envelope.manifest)), side.sha256) !== envelope.manifestHash) {
    throw new Error('the manifest is not the one that was published')
  }
  return { envelope, input }
}

/**
 * The beginning of a fork, copied from the journal of a run that this node has, or why it cannot begin; nothing where the fork stands
 * already.
 */
async function copiesFor(side: NodeSide, runId: string, createdMs: number, { forkedRun, forkedStep }: Forked) {
  const { rows } = await side.db.execute({ sql: 'select 1 from tunnel_runs where run_id = ?', args: [runId] })
  if (rows.length > 0) return undefined
  const kept = stepsToCopy(await journalOutline(side.runs, forkedRun), forkedStep)
  if (kept === undefined) return `run ${forkedRun} has no step ${forkedStep} here`
  let events: SealedEvent[]
  try {
    events = await copiedEvents(side, kept, runId, { at: new Date(createdMs) })
  } catch (error) {
    if (error instanceof ApiError && error.code === 'payload_too_large') return error.message
    throw error
  }
  const blobs = {
    sql: `insert into blobs (run_id, sha256, media_type, content, sealed)
      select ?, sha256, media_type, content, sealed from blobs where run_id = ? on conflict do nothing`,
    args: [runId, forkedRun],
  }
  const unit = { runId, epoch: 0, events, approvals: [] }
  return {
    begin: { events, forkedFrom: { runId: forkedRun, stepId: forkedStep } },
    tell: [blobs, ...reportRows(side.reportsAs)([unit])],
  }
}

/** What budgets allow now, also to runs that are here already. */
function currentLimits(side: NodeSide) {
  let known: string | undefined
  return {
    async keep(agents: readonly AgentLimit[]): Promise<void> {
      const text = agents
        .map(one =>
          [one.agentId, one.runCostNanoUsd, one.runCostHard, one.askBudget, ...Object.entries(one.toolLimits)].join(
            ' ',
          ),
        )
        .join('\n')
      if (text === known) return
      await side.db.write(
        agents.flatMap(one => [
          {
            sql: `update tunnel_runs set ask_budget = ?2 where run_id in (select id from runs where ${OPEN_OF_AGENT})`,
            args: [one.agentId, one.askBudget ? 1 : 0],
          },
          limitOf(side, one.agentId, one),
        ]),
      )
      known = text
    },

    /** An order has limits of its own, as they were when it was written. */
    forget(): void {
      known = undefined
    },
  }
}

/** What the agent's budget limits for each run and of its actions, as the control plane said it last. */
function limitOf(
  { now }: Pick<NodeSide, 'now'>,
  agentId: string,
  { runCostNanoUsd: limit, runCostHard, toolLimits }: Pick<AgentLimit, 'runCostNanoUsd' | 'runCostHard' | 'toolLimits'>,
): InStatement {
  const tools = Object.entries(toolLimits).map(([tool, most]) => [tool, Number(most)])
  if (limit === undefined && tools.length === 0)
    return { sql: 'delete from budgets where agent_id = ?', args: [agentId] }
  return {
    sql: `insert into budgets
        (agent_id, tenant_id, agent_name, cost_nano_run, hard_fail, notify_pct, tool_limits, created_ms, updated_ms)
      select id, tenant_id, name, ?2, ?3, 100, ?4, ?5, ?5 from agents where id = ?1
      on conflict (agent_id) do update set cost_nano_run = ?2, hard_fail = ?3, tool_limits = ?4, updated_ms = ?5`,
    args: [
      // Limits of actions come of a hard budget alone.
      ...[agentId, limit === undefined ? null : Number(limit), runCostHard || tools.length > 0 ? 1 : 0],
      ...[JSON.stringify(Object.fromEntries(tools)), now().getTime()],
    ],
  }
}

async function cancel(side: NodeSide, runId: string, reason: string, remove: boolean): Promise<void> {
  const known = await side.db.execute({ sql: 'select epoch from tunnel_runs where run_id = ?', args: [runId] })
  if (known.rows.length === 0) {
    await refuseChild(side, { runId: '', childId: runId, code: 'subagent_failed', message: 'the run was cancelled' })
    if (!remove) await side.db.write([tell(side, { t: 'accept', run: runId, ok: false, reason: 'unknown here' })])
    side.reportSoon(true)
    return
  }
  await side.engine.end(runId, { code: 'cancelled', ...(reason !== '' && { reason }) })
  if (remove && (await side.runs.remove(runId))) {
    await side.db.write([
      { sql: 'delete from receipts where run_id = ?', args: [runId] },
      { sql: 'delete from tunnel_runs where run_id = ?', args: [runId] },
      { sql: 'delete from tunnel_children where parent_id = ?', args: [runId] },
    ])
  }
}

/** A run that one here asked for is not to come. */
async function refuseChild(side: NodeSide, { childId, code, message }: Omit<ChildRefused, '$typeName'>): Promise<void> {
  const asked = 'select parent_id from tunnel_children where child_id = ?1'
  await side.db.write([
    {
      sql: `update tunnel_children set error_code = ?2, error_message = ?3
        where child_id = ?1 and not exists (select 1 from runs where id = ?1)`,
      args: [childId, code, message],
    },
    {
      sql: `update runs set due_ms = 0 where id = (${asked}) and owner is null and status in ('running', 'waiting')`,
      args: [childId],
    },
  ])
  side.engine.wake()
}

/** What does not open will not open later: it is left, so that what stands behind it is done. */
async function openedOrLeft<T>(side: NodeSide, box: Uint8Array, place: string): Promise<T | undefined> {
  try {
    return await opened<T>(side, box, place)
  } catch (error) {
    side.log.error('an order of the control plane does not open and is left', { error, place })
    return undefined
  }
}

async function decide(
  side: NodeSide,
  runId: string,
  approvalId: string,
  approve: boolean,
  box: Uint8Array,
): Promise<void> {
  const sent = await openedOrLeft<{ by: string; atMs: number; decision: ApprovalDecision }>(
    side,
    box,
    decisionAad(approvalId),
  )
  if (sent === undefined) return
  const { by, atMs, decision } = sent
  await side.approvals.decide(
    { id: approvalId, runId },
    { approve, by, atMs: Math.min(atMs, side.now().getTime()), decision },
  )
  side.engine.wake()
}

async function signal(side: NodeSide, runId: string, box: Uint8Array): Promise<void> {
  const sent = await openedOrLeft<{ id: string; name: string; value: string; atMs: number }>(
    side,
    box,
    signalAad(runId),
  )
  if (sent === undefined) return
  const { id, name, value, atMs } = sent
  if (name === 'resume') {
    const [resumed] = await side.db.write([
      resumption(runId, side.now().getTime()),
      {
        sql: 'insert into tunnel_outbox (frame, node_id) select ?, ? where changes() > 0',
        args: [JSON.stringify({ t: 'parked', run: runId, reason: '' } satisfies Report), side.reportsAs],
      },
      { sql: 'insert into tunnel_taken (id) select ? where changes() > 0 on conflict do nothing', args: [id] },
    ])
    if (resumed?.rowsAffected === 1) {
      side.engine.wake()
      side.reportSoon(true)
      return
    }
  }
  await side.db.write([
    {
      sql: `insert into signals (id, run_id, name, value, created_ms) select ?1, ?2, ?3, ?4, ?5
        where exists (select 1 from runs where id = ?2 and status in ('queued', 'running', 'waiting'))
          and not exists (select 1 from tunnel_taken where id = ?1)
          and (select count(*) from signals where run_id = ?2) < 100`,
      args: [id, runId, name, side.records.seal(value, { record: runId, field: `signal ${id}` }), atMs],
    },
    { sql: 'insert into tunnel_taken (id) values (?) on conflict do nothing', args: [id] },
    {
      sql: `update runs set due_ms = 0 where id = ? and owner is null and parked = 'signal' and status in ('running', 'waiting')`,
      args: [runId],
    },
  ])
  side.engine.wake()
}

async function stopSession(side: NodeSide, id: string, remove: boolean): Promise<void> {
  const turnId = await side.sessions.stop(id, side.now().getTime())
  if (turnId !== undefined) await side.engine.end(turnId, { code: 'cancelled' })
  if (remove) await side.sessions.remove(id, side.now().getTime())
}

async function opened<T>(side: NodeSide, box: Uint8Array, place: string): Promise<T> {
  return readJson(decoder.decode(await openSealed(side.poolKeys, box, place))) as T
}

function tell(side: NodeSide, report: Report): InStatement {
  return {
    sql: 'insert into tunnel_outbox (frame, node_id) values (?, ?)',
    args: [JSON.stringify(report), side.reportsAs],
  }
}

function begunBy({
  sessionId,
  parentRun,
  depth,
}: Pick<Assign, 'sessionId' | 'parentRun' | 'depth'>): Pick<NewRun, 'trigger' | 'sessionId' | 'parentRunId' | 'depth'> {
  if (parentRun !== '') return { trigger: { kind: 'subagent', ref: parentRun }, parentRunId: parentRun, depth }
  if (sessionId === '') return { trigger: { kind: 'api' } }
  return { trigger: { kind: 'session', ref: sessionId }, sessionId }
}
