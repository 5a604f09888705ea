import { create } from '@bufbuild/protobuf'
import type { InStatement } from '@libsql/client/web'
import type { Log } from '../../shared/log/log.ts'
import { fromBase64, fromHex, utf8 } from '../../shared/sign/bytes.ts'
import type { Signer } from '../../shared/sign/ed25519.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import type { Db } from '../../shared/sql/db.ts'
import {
  type Assign,
  type ChildRefused,
  type Complete,
  CompleteSchema,
  type ControlFrame,
  type NodeFrame,
  NodeFrameSchema,
  type ReadRequest,
  type SecretPut,
} from '../../shared/tunnel/gateway.gen.ts'
import type { OutboxRow } from '../../shared/tunnel/outbox.ts'
import { completeMessage } from '../../shared/tunnel/protocol.ts'
import { type BoxKeys, openSealed, sealTo } from '../../shared/tunnel/sealed-box.ts'
import type { ApprovalDecision } from '../../shared/wire/runtime/approval.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { ManifestTexts } from '../agents/texts.ts'
import type { ApprovalStore } from '../approvals/store.ts'
import type { Engine } from '../execution/engine.ts'
import { copiedSteps } from '../runs/fork.ts'
import type { NewRun, RunStore } from '../runs/store.ts'
import type { SessionStore } from '../sessions/store.ts'
import type { TurnInput } from '../sessions/turn-input.ts'
import { inputPlace, type ManifestEnvelope, manifestPlace, textsPlace } from './dispatcher.ts'
import { poolKeyPlace } from './enrolment.ts'
import { decisionPlace, signalPlace } from './far-approvals.ts'
import type { FarApproval, FarData, FarEventText } from './far-data.ts'
import { type News, newsOf } from './news.ts'
import { type SeatCredentialsDeps, seatCredentials } from './seat-credentials.ts'
import { seatOthers } from './seat-others.ts'

/** A piece of the text of a turn, as it is said; `seq` 1 begins the text anew. */
export interface Piece {
  sessionId: string
  turnId: string
  seq: number
  delta: string
}

/** Who a runtime is when it executes for a control plane elsewhere. */
export interface SeatIdentity {
  nodeId: string
  tenantId: string
  pool: string
  poolKeys: BoxKeys
  /** 32 bytes under which it seals the credentials that it is given. */
  sealKey: Uint8Array<ArrayBuffer>
  signer: Signer
  /** Its id, where other nodes have the same store, and null where it has one of its own. */
  speaksAs: string | null
  /** Something was committed that the control plane is to be told; `soon`: somebody waits for it. */
  news: (soon: boolean) => void
  /** A piece of what is said in a turn. */
  said: (piece: Piece) => void
  /** `seat`, which only a node loads. */
  make: (identity: SeatIdentity, deps: SeatDeps) => Seat
}

export interface SeatDeps {
  db: Db
  sha256: Sha256
  runs: RunStore
  engine: Pick<Engine, 'wake' | 'end' | 'active'>
  approvals: ApprovalStore
  sessions: Pick<SessionStore, 'turn' | 'messages' | 'stop' | 'remove' | 'orderedTurn'>
  now: () => Date
  log: Log
  dayOf: (ms: number) => string
  /** Where runs here look for what they are given beside their input. */
  keeping: Pick<SeatCredentialsDeps, 'secrets' | 'providers' | 'checkProvider' | 'connectors'>
}

/** A runtime as the node end of a tunnel sees it: what to do with what comes, and what to tell. */
export type Seat = ReturnType<typeof seat>

const decoder = new TextDecoder()
/** More than a run can have. */
const MOST_EVENTS = 100_000
type Forked = Pick<Assign, 'forkedRun' | 'forkedStep'>
export function seat(identity: SeatIdentity, deps: SeatDeps) {
  const { db, sha256, runs, engine, approvals, now, log, dayOf } = deps
  const { tenantId, pool, poolKeys, signer, nodeId, speaksAs } = identity

  const tell = (news: News): InStatement => ({
    sql: 'insert into tunnel_outbox (frame, node_id) values (?, ?)',
    args: [JSON.stringify(news), speaksAs],
  })
  const accept = (news: Extract<News, { t: 'accept' }>): InStatement => tell(news)

  async function opened<T>(box: Uint8Array, place: string): Promise<T> {
    return JSON.parse(decoder.decode(await openSealed(poolKeys, box, place))) as T
  }

  /** From the commit that writes it on, the run is this node's; an order that comes twice makes one run. */
  async function assign({ runId, epoch, agentVersionId, ...sent }: Assign): Promise<void> {
    const createdMs = Number(sent.createdUnixMs)
    let envelope: ManifestEnvelope
    let input: unknown
    try {
      envelope = await opened<ManifestEnvelope>(sent.manifestSealed, manifestPlace(agentVersionId))
      input = await opened(sent.inputSealed, inputPlace(runId))
      if (sent.textsSealed.length > 0) {
        const texts = await opened<ManifestTexts>(sent.textsSealed, textsPlace(agentVersionId))
        envelope.manifest = { ...envelope.manifest, ...texts }
      }
      if (sha256Hex(utf8(canonicalize(envelope.manifest)), sha256) !== envelope.manifestHash) {
        throw new Error('the manifest is not the one that was published')
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'it does not open'
      await db.write([accept({ t: 'accept', run: runId, ok: false, reason, epoch: Number(epoch) })])
      identity.news(true)
      return
    }
    const { agentId, agentName, versionId, number, manifest, manifestHash } = envelope
    const copied = sent.forkedRun === '' ? undefined : await copiesFor(runId, createdMs, sent)
    if (copied === 'missing') {
      const reason = `run ${sent.forkedRun} has no step ${sent.forkedStep} here`
      await db.write([accept({ t: 'accept', run: runId, ok: false, reason, epoch: Number(epoch) })])
      identity.news(true)
      return
    }
    await runs.create({
      ...copied?.begin,
      ...{ id: runId, tenantId, agentName, agentId, versionId, createdMs, labels: '{}', ...begunBy(sent) },
      ...{ input: canonicalize(input), isolation: manifest.isolation, day: dayOf(createdMs) },
      also: [
        {
          sql: `insert into tenants (id, name, created_ms) values (?, ?, ?) on conflict do nothing`,
          args: [tenantId, JSON.stringify(tenantId), createdMs],
        },
        {
          // Without a name that anything here could look up: agents are made at the control plane.
          sql: `insert into agents (id, tenant_id, name, labels, current_version_id, versions, created_ms, deleted_ms)
            values (?, ?, ?, '{}', ?, 1, ?, ?) on conflict do nothing`,
          args: [agentId, tenantId, agentName, versionId, createdMs, createdMs],
        },
        {
          sql: `insert into agent_versions (id, tenant_id, agent_id, number, manifest, manifest_hash, created_ms, created_by)
            values (?, ?, ?, ?, ?, ?, ?, '') on conflict do nothing`,
          args: [versionId, tenantId, agentId, number, JSON.stringify(manifest), manifestHash, createdMs],
        },
        {
          sql: `insert into tunnel_runs (run_id, epoch, node_id) values (?1, ?2, ?3)
            on conflict do update set epoch = ?2`,
          args: [runId, Number(epoch), speaksAs],
        },
        ...limitOf(agentId, agentName, sent),
        ...(sent.sessionId === ''
          ? []
          : deps.sessions.orderedTurn(
              { id: sent.sessionId, tenantId, agentName, agentId, versionId },
              runId,
              (input as TurnInput).systemHint,
              createdMs,
            )),
        accept({ t: 'accept', run: runId, ok: true, reason: '' }),
        ...(copied?.tell ?? []),
      ],
    })
    engine.wake()
    identity.news(true)
  }

  /** The beginning of a fork, copied from the journal of a run that this node has; nothing where the fork stands already. */
  async function copiesFor(runId: string, createdMs: number, { forkedRun, forkedStep }: Forked) {
    const { rows } = await db.execute({ sql: 'select 1 from tunnel_runs where run_id = ?', args: [runId] })
    if (rows.length > 0) return undefined
    const source = await runs.events(forkedRun, 1, MOST_EVENTS)
    const events = copiedSteps(source, forkedStep, runId, new Date(createdMs), sha256)
    if (events === undefined) return 'missing'
    const blobs = {
      sql: `insert into blobs (run_id, sha256, media_type, content, sealed)
        select ?, sha256, media_type, content, sealed from blobs where run_id = ? on conflict do nothing`,
      args: [runId, forkedRun],
    }
    const unit = { runId, epoch: 0, events, approvals: [] }
    return {
      begin: { events, forkedFrom: { runId: forkedRun, stepId: forkedStep } },
      tell: [blobs, ...newsOf(speaksAs)([unit])],
    }
  }

  /** The limit that the agent's budget sets for each run, as it was when the last of its runs was sent here. */
  function limitOf(agentId: string, agentName: string, sent: Pick<Assign, 'runCostNanoUsd' | 'runCostHard'>) {
    const { runCostNanoUsd: limit, runCostHard: hard } = sent
    if (limit === undefined) return [{ sql: 'delete from budgets where agent_id = ?', args: [agentId] }]
    return [
      {
        sql: `insert into budgets
            (agent_id, tenant_id, agent_name, cost_nano_run, hard_fail, notify_pct, tool_limits, created_ms, updated_ms)
          values (?1, ?2, ?3, ?4, ?5, 100, '{}', ?6, ?6)
          on conflict (agent_id) do update set cost_nano_run = ?4, hard_fail = ?5, updated_ms = ?6`,
        args: [agentId, tenantId, agentName, Number(limit), hard ? 1 : 0, now().getTime()],
      },
    ]
  }

  async function cancel(runId: string, reason: string, remove: boolean): Promise<void> {
    const known = await db.execute({ sql: 'select epoch from tunnel_runs where run_id = ?', args: [runId] })
    if (known.rows.length === 0) {
      await refused({ runId: '', childId: runId, code: 'subagent_failed', message: 'the run was cancelled' })
      if (!remove) await db.write([accept({ t: 'accept', run: runId, ok: false, reason: 'unknown here' })])
      identity.news(true)
      return
    }
    await engine.end(runId, { code: 'cancelled', ...(reason !== '' && { reason }) })
    if (remove && (await runs.remove(runId))) {
      await db.write([
        { sql: 'delete from receipts where run_id = ?', args: [runId] },
        { sql: 'delete from tunnel_runs where run_id = ?', args: [runId] },
        { sql: 'delete from tunnel_children where parent_id = ?', args: [runId] },
      ])
    }
  }

  /** A run that one here asked for is not to come. */
  async function refused({ childId, code, message }: Omit<ChildRefused, '$typeName'>): Promise<void> {
    const asked = 'select parent_id from tunnel_children where child_id = ?1'
    await db.write([
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
    engine.wake()
  }

  /** What does not open will not open later: it is left, so that what stands behind it is done. */
  async function openedOrLeft<T>(box: Uint8Array, place: string): Promise<T | undefined> {
    try {
      return await opened<T>(box, place)
    } catch (error) {
      log.error('an order of the control plane does not open and is left', { error, place })
      return undefined
    }
  }

  async function decide(runId: string, approvalId: string, approve: boolean, box: Uint8Array): Promise<void> {
    const sent = await openedOrLeft<{ by: string; atMs: number; decision: ApprovalDecision }>(
      box,
      decisionPlace(approvalId),
    )
    if (sent === undefined) return
    const { by, atMs, decision } = sent
    await approvals.decide({ id: approvalId, runId }, { approve, by, atMs: Math.min(atMs, now().getTime()), decision })
    engine.wake()
  }

  async function signal(runId: string, box: Uint8Array): Promise<void> {
    const sent = await openedOrLeft<{ id: string; name: string; value: string; atMs: number }>(box, signalPlace(runId))
    if (sent === undefined) return
    const { id, name, value, atMs } = sent
    await db.write([
      {
        sql: `insert into signals (id, run_id, name, value, created_ms) select ?1, ?2, ?3, ?4, ?5
          where exists (select 1 from runs where id = ?2 and status in ('queued', 'running', 'waiting'))
            and not exists (select 1 from tunnel_taken where id = ?1)
            and (select count(*) from signals where run_id = ?2) < 100`,
        args: [id, runId, name, value, atMs],
      },
      { sql: 'insert into tunnel_taken (id) values (?) on conflict do nothing', args: [id] },
      {
        sql: `update runs set due_ms = 0 where id = ? and owner is null and parked = 'signal' and status in ('running', 'waiting')`,
        args: [runId],
      },
    ])
    engine.wake()
  }

  async function stopSession(id: string, remove: boolean): Promise<void> {
    const turnId = await deps.sessions.stop(id, now().getTime())
    if (turnId !== undefined) await engine.end(turnId, { code: 'cancelled' })
    if (remove) await deps.sessions.remove(id, now().getTime())
  }

  const keep = seatCredentials({ ...deps.keeping, tenantId, pool, opened })

  async function credential(put: SecretPut): Promise<void> {
    const error = await keep(put)
    if (error !== '') log.error('a credential of the control plane cannot be kept', { ref: put.ref, reason: error })
    if (put.remove) return
    const news: News = { t: 'credential', ref: put.ref, error }
    await db.write([tell(news)])
    identity.news(true)
  }

  async function one({ body }: ControlFrame): Promise<void> {
    switch (body.case) {
      case 'assign':
        return assign(body.value)
      case 'cancel':
        return cancel(body.value.runId, body.value.reason, body.value.remove)
      case 'approval':
        return decide(
          body.value.runId,
          body.value.approvalId,
          body.value.decision === 'approve',
          body.value.detailSealed,
        )
      case 'secretPut':
        return credential(body.value)
      case 'childRefused':
        return refused(body.value)
      case 'sessionStop':
        return stopSession(body.value.sessionId, body.value.remove)
      case 'signal':
        return signal(body.value.runId, body.value.valueSealed)
      default:
        return undefined
    }
  }

  /** A run's end as it is told: the receipt that this node signed for it has the hashes. */
  async function complete(runId: string): Promise<Omit<Complete, '$typeName'> | undefined> {
    const [found, data, receipts] = await db.read([
      {
        sql: `select r.*, t.epoch as told_epoch from runs r join tunnel_runs t on t.run_id = r.id
          where r.id = ? and r.finished_ms is not null`,
        args: [runId],
      },
      { sql: 'select input, output from run_data where run_id = ?', args: [runId] },
      { sql: 'select envelope from receipts where run_id = ?', args: [runId] },
    ])
    const [row, texts] = [found?.rows[0], data?.rows[0]]
    if (!row || !texts) return undefined
    const envelope = receipts?.rows[0]?.[0]
    const models = envelope ? (JSON.parse(String(envelope)) as Receipt).payload.models : []
    const hash = (text: unknown) => fromHex(sha256Hex(utf8(String(text ?? '{}')), sha256))
    const told: Omit<Complete, '$typeName'> = {
      ...{ runId, epoch: BigInt(Number(row.told_epoch)), status: String(row.status) },
      ...{ errorCode: String(row.error_code ?? ''), errorStep: String(row.error_step ?? '') },
      ...{ head: fromHex(String(row.head)), eventCount: BigInt(Number(row.event_count)) },
      ...{ inputHash: hash(texts.input), outputHash: hash(texts.output), models },
      ...{ tokensIn: BigInt(Number(row.tokens_in)), tokensOut: BigInt(Number(row.tokens_out)) },
      costNanoUsd: BigInt(Number(row.cost_nano)),
      ...{ isolation: String(row.isolation_used ?? row.isolation), finishedUnixMs: BigInt(Number(row.finished_ms)) },
      nodeSignature: new Uint8Array(),
    }
    return { ...told, nodeSignature: await signer.sign(completeMessage(create(CompleteSchema, told))) }
  }

  async function frameOf(news: News, epoch: number): Promise<NodeFrame | undefined> {
    switch (news.t) {
      case 'event': {
        const value = {
          ...{ runId: news.run, epoch: BigInt(epoch), eventSeq: BigInt(news.seq), kind: news.kind, stepId: news.step },
          ...{ attempt: news.attempt, at: news.at, hash: fromHex(news.hash), model: news.model },
          ...{ tokensIn: BigInt(news.in), tokensOut: BigInt(news.out), costNanoUsd: BigInt(news.nano) },
        }
        return create(NodeFrameSchema, { body: { case: 'event', value } })
      }
      case 'accept': {
        const { run: runId, ok, reason } = news
        const value = { runId, epoch: BigInt(news.epoch ?? epoch), ok, reason: reason.slice(0, 500) }
        return create(NodeFrameSchema, { body: { case: 'accept', value } })
      }
      case 'ask': {
        const { run: runId, step: stepId, id: approvalId, reason, expires } = news
        const value = { runId, stepId, approvalId, reason, expiresUnix: BigInt(Math.ceil(expires / 1000)) }
        return create(NodeFrameSchema, { body: { case: 'approval', value } })
      }
      case 'took': {
        const value = { runId: news.run, epoch: BigInt(epoch) }
        return create(NodeFrameSchema, { body: { case: 'took', value } })
      }
      case 'child': {
        const { run: runId, child: childId, agent: agentName, box, hash, length } = news
        const value = {
          ...{ runId, epoch: BigInt(epoch), childId, agentName, inputSealed: fromBase64(box) },
          ...{ inputHash: fromHex(hash), inputLength: BigInt(length) },
        }
        return create(NodeFrameSchema, { body: { case: 'childAsk', value } })
      }
      case 'credential': {
        const value = { ref: news.ref, ok: news.error === '', error: news.error.slice(0, 500) }
        return create(NodeFrameSchema, { body: { case: 'secretAck', value } })
      }
      case 'complete': {
        const value = await complete(news.run)
        return value && create(NodeFrameSchema, { body: { case: 'complete', value } })
      }
    }
  }

  async function rowsOf(sql: string, ids: readonly string[]) {
    const { rows } = await db.execute({ sql, args: [JSON.stringify(ids)] })
    return rows
  }

  const others = speaksAs === null ? undefined : seatOthers(speaksAs, db)

  return {
    nodeId,
    active: () => engine.active,

    /** Which store this is, the same for all who have it. */
    async storeId(): Promise<string> {
      const [, found] = await db.write([
        {
          sql: `insert into runtime_meta (key, value) values ('store_id', ?) on conflict do nothing`,
          args: [crypto.randomUUID()],
        },
        `select value from runtime_meta where key = 'store_id'`,
      ])
      return String(found?.rows[0]?.[0])
    },

    /** With each heartbeat: the nodes that share the store see this one, and it sees them. */
    async beat(lostMs: number): Promise<void> {
      if (others && (await others.beat(now().getTime(), lostMs))) identity.news(true)
    },

    /** What the control plane ordered, in order; orders for new runs that stand together share a commit. */
    async handle(frames: readonly ControlFrame[]): Promise<void> {
      let together: Promise<void>[] = []
      for (const frame of frames) {
        if (frame.body.case === 'assign') {
          together.push(one(frame))
          continue
        }
        await Promise.all(together)
        together = []
        await one(frame)
      }
      await Promise.all(together)
    },

    /** What the control plane has not been told, oldest first. */
    async untold(afterId: number, most: number): Promise<OutboxRow<NodeFrame>[]> {
      const { rows } = await db.execute({
        sql: `select o.id, o.frame, t.epoch from tunnel_outbox o left join tunnel_runs t on t.run_id = o.frame ->> 'run'
          where o.id > ? and o.node_id is ? order by o.id limit ?`,
        args: [afterId, speaksAs, most],
      })
      const made: OutboxRow<NodeFrame>[] = []
      for (const row of rows) {
        const frame = await frameOf(JSON.parse(String(row.frame)) as News, Number(row.epoch ?? 0))
        // A run that was deleted meanwhile has nothing left to tell; its place is taken by a word of no meaning.
        const ackOnly = { body: { case: 'ackOnly' as const, value: {} } }
        made.push({ id: Number(row.id), frame: frame ?? create(NodeFrameSchema, ackOnly) })
      }
      return made
    },

    async told(upToId: number): Promise<void> {
      await db.execute({ sql: 'delete from tunnel_outbox where id <= ? and node_id is ?', args: [upToId, speaksAs] })
    },

    /** The runs that this node has something to do or to tell about. */
    async held() {
      const { rows } = await db.execute(
        `select t.run_id, t.epoch, r.status, (select coalesce(max(seq), 0) from events where run_id = t.run_id) as seq
          from tunnel_runs t join runs r on r.id = t.run_id
          where r.finished_ms is null or t.run_id in (select frame ->> 'run' from tunnel_outbox)`,
      )
      return rows.map(row => ({
        ...{ runId: String(row.run_id), epoch: BigInt(Number(row.epoch)), status: String(row.status) },
        lastEvent: BigInt(Number(row.seq)),
      }))
    },

    /** Answers what only this node knows. */
    async read({ kind, id, from, limit, box }: ReadRequest): Promise<{ status: number; body: Uint8Array }> {
      const answer = (value: unknown) => ({ status: 200, body: utf8(JSON.stringify(value)) })
      if (kind === 'data') {
        const rows = await rowsOf(
          `select run_id, input, output, error_message from run_data
            where run_id in (select value from json_each(?)) and run_id in (select run_id from tunnel_runs)`,
          id.split(','),
        )
        return answer(
          rows.map(
            (row): FarData => ({
              id: String(row.run_id),
              input: JSON.parse(String(row.input)) as FarData['input'],
              ...(row.output !== null && { output: JSON.parse(String(row.output)) as FarData['input'] }),
              ...(row.error_message !== null && { errorMessage: String(row.error_message) }),
            }),
          ),
        )
      }
      if (kind === 'events') {
        const { rows } = await db.execute({
          sql: `select hash, body from events where run_id = ? and seq >= ? order by seq limit ?`,
          args: [id, Number(from), Math.min(Math.max(1, limit), 500)],
        })
        return answer(rows.map((row): FarEventText => ({ hash: String(row.hash), body: String(row.body) })))
      }
      if (kind === 'approvals') {
        const rows = await rowsOf(
          'select id, prompt, action, comment from approvals where id in (select value from json_each(?))',
          id.split(','),
        )
        return answer(
          rows.map(
            (row): FarApproval => ({
              ...{ id: String(row.id), prompt: String(row.prompt) },
              ...(row.action !== null && {
                action: JSON.parse(String(row.action)) as NonNullable<FarApproval['action']>,
              }),
              ...(row.comment !== null && { comment: String(row.comment) }),
            }),
          ),
        )
      }
      if (kind === 'messages') return answer(await deps.sessions.messages(id))
      if (kind === 'turns') {
        const ends = await Promise.all(id.split(',').map(turnId => deps.sessions.turn(turnId)))
        return answer(ends.filter(end => end !== undefined))
      }
      if (kind === 'texts') {
        const texts = await opened<ManifestTexts>(box, textsPlace(id)).catch(() => undefined)
        if (texts) return answer(texts)
      }
      if (kind === 'pool-key' && /^[0-9a-f]{64}$/.test(id)) {
        const sealed = await sealTo(fromHex(id), poolKeys.privateKey, poolKeyPlace(tenantId, pool))
        return { status: 200, body: sealed }
      }
      return { status: 404, body: new Uint8Array() }
    },
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
