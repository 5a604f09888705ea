import type { InStatement } from '@libsql/client/web'
import type { Log } from '../../../shared/log/log.ts'
import type { Counter } from '../../../shared/metrics/metrics.ts'
import { toBase64, toHex } from '../../../shared/sign/bytes.ts'
import type { CurveKeys } from '../../../shared/sign/curve-keys.ts'
import type { Db } from '../../../shared/sql/db.ts'
import type { ApprovalAsk, ChildAsk, Complete, Event, NodeFrame } from '../../../shared/tunnel/gateway.gen.ts'
import { completeMessage } from '../../../shared/tunnel/protocol.ts'
import { approvalReason } from '../../../shared/wire/runtime/approval.ts'
import { backends } from '../../../shared/wire/runtime/isolation.ts'
import { eventKinds } from '../../../shared/wire/runtime/journal.ts'
import { isTerminal, runErrorCodes } from '../../../shared/wire/runtime/run.ts'
import { POISONED, RATE_LIMIT } from '../../execution/claim-statement.ts'
import type { RemoteRunEvents } from '../../webhooks/run-events.ts'
import type { NodeRow } from '../registry/node.ts'
import { type Closing, closeRemoteRuns, type RemoteRunEnd } from './close-remote-runs.ts'
import { lateUse } from './remote-holds.ts'
import type { RemoteRun } from './remote-run.ts'
import { isMoved, type Moved, type RemoteEvent, type RemoteRunStore } from './remote-run-store.ts'

/** Signs what a run on a node came to; undefined where there is nothing to sign with. */
export type SignRemoteRun = (
  run: RemoteRun,
  end: Pick<RemoteRunEnd, 'status' | 'finishedMs'>,
) => Promise<string | undefined>

export interface ApplyReportsDeps {
  db: Db
  store: RemoteRunStore
  log: Log
  now: () => Date
  dayOf: (ms: number) => string
  signRemoteRun: SignRemoteRun
  verifySignature: CurveKeys['verifySignature']
  /** The webhook deliveries of runs that moved; last in the commit. */
  enqueueEvent: (moved: readonly { runId: string; epoch: number; status: string; atMs: number }[]) => InStatement[]
  /** Those of what its events say. */
  enqueueRemoteEvents: RemoteRunEvents
  /** What a run has used is stored. */
  spent: (run: RemoteRun) => void
  /** A node has so many runs less to do. */
  freed: (nodeId: string, runs: number) => void
  /** Frames that were dropped: of another node's run, of an older epoch, or of no sense. */
  dropped: Pick<Counter, 'add'>
  ended: (status: RemoteRunEnd['status'], costNano: number) => void
  /** Its node has set a run aside. */
  setAside: (runId: string, nodeId: string) => void
  /** Reports to the watchers of a run how far it has come. */
  watched: (runId: string, seq: number, terminal: boolean) => void
  /** Its turn is about to end, and has ended, where it is one. */
  turn: { ending: (run: RemoteRun) => void; ended: (run: RemoteRun) => void }
  /** A run of another node is this node's, as it says; false: it is not. */
  took: (run: RemoteRun, nodeId: string) => Promise<boolean>
  /** A run calls another agent; done again when it throws. */
  child: (parent: RemoteRun, ask: ChildAsk) => Promise<void>
  /** A run has failed, which may have called others. */
  failed: (run: Pick<RemoteRun, 'id'>) => void
  /** A node refused a run: it waits for another one, where another one could take it. */
  requeued: (nodeId: string, run: Pick<RemoteRun, 'id' | 'epoch' | 'pinned'>) => void
}

/** The hash of an output that is empty: of a run that did not succeed. */
export const EMPTY_OUTPUT_HASH = '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'

interface Batch {
  node: NodeRow
  runs: Map<string, RemoteRun>
  events: RemoteEvent[]
  moved: Map<string, Moved>
  /** What is reported of runs that had ended here. */
  late: Map<string, { run: RemoteRun; used: Moved }>
  tips: Set<RemoteRun>
  /** What a run waits for, or that it goes on; an event that comes later says more. */
  parked: Map<string, typeof POISONED | ''>
  /** Runs that wait for a rate limit, and until when. */
  limited: Map<string, number>
  /** Whether these have ended has to be so still; before anything is written. */
  as: { id: string; open: boolean }[]
  accepted: string[]
  /** How many questions each run has that asks another one. */
  asked: Map<string, number>
  statements: InStatement[]
  sealing: { run: RemoteRun; frame: Complete }[]
  closings: Closing[]
  requeued: RemoteRun[]
  turns: RemoteRun[]
  ends: { status: RemoteRunEnd['status']; costNano: number }[]
  children: { parent: RemoteRun; ask: ChildAsk }[]
  /** How many frames were dropped, by why and what they were. */
  dropped: Map<string, number>
}

/**
 * Writes down what a node told, a batch in one transaction (docs/spec/runtime.md §14). Each frame counts once by its run, epoch and
 * sequence, whatever is repeated; what a node says about a run that is not its own is dropped and counted.
 */
export function applyReports(deps: ApplyReportsDeps) {
  /** True: a node may have room for another run, or a run waits for one. */
  return async (node: NodeRow, frames: readonly NodeFrame[]): Promise<boolean> => {
    // A run ends once, so this is done again once for each that ends here, at most.
    for (;;) {
      const done = await applyBatch(deps, node, frames)
      if (done !== undefined) return done
    }
  }
}

/** Undefined: a run has ended elsewhere since it was read. */
async function applyBatch(
  deps: ApplyReportsDeps,
  node: NodeRow,
  frames: readonly NodeFrame[],
): Promise<boolean | undefined> {
  const ids = new Set(
    frames.flatMap(({ body }) =>
      body.value !== undefined && 'runId' in body.value ? [body.value.runId.toWellFormed()] : [],
    ),
  )
  await storeCredentialReports(deps, node, frames)
  if (ids.size === 0) return false
  const asking = new Set(
    frames.flatMap(({ body }) => (body.case === 'approval' ? [body.value.runId.toWellFormed()] : [])),
  )
  const batch: Batch = {
    node,
    runs: await deps.store.these([...ids]),
    events: [],
    moved: new Map(),
    late: new Map(),
    tips: new Set(),
    parked: new Map(),
    limited: new Map(),
    as: [],
    accepted: [],
    asked: asking.size === 0 ? new Map() : await deps.store.asked([...asking]),
    statements: [],
    sealing: [],
    closings: [],
    requeued: [],
    turns: [],
    ends: [],
    children: [],
    dropped: new Map(),
  }
  for (const frame of frames) await applyFrame(deps, batch, frame)
  tellDropped(deps, batch)
  for (const sealing of batch.sealing) await sealRun(deps, batch, sealing)
  const kept = await writeUnlessMoved(deps, statementsOf(deps, batch))
  if (!kept) {
    for (const run of batch.turns) deps.turn.ended(run)
    return undefined
  }
  for (const [id, reason] of batch.parked) if (reason !== '') deps.setAside(id, node.id)
  for (const { status, costNano } of batch.ends) deps.ended(status, costNano)
  deps.freed(node.id, batch.ends.length + batch.requeued.length)
  for (const { parent, ask } of batch.children) await deps.child(parent, ask)
  const spenders = new Set(
    batch.events.flatMap(({ runId, tokensIn, tokensOut }) => (tokensIn + tokensOut > 0 ? [runId] : [])),
  )
  for (const run of batch.runs.values()) if (spenders.has(run.id)) deps.spent(run)
  for (const run of batch.tips) deps.watched(run.id, run.eventSeq, false)
  for (const { run } of batch.sealing) {
    deps.watched(run.id, run.eventSeq, true)
    if (batch.runs.get(run.id)?.status === 'failed') deps.failed(run)
  }
  for (const run of batch.turns) deps.turn.ended(run)
  for (const run of batch.requeued) deps.requeued(node.id, run)
  return (
    batch.sealing.length + batch.requeued.length + batch.children.length > 0 ||
    [...batch.moved.values()].some(({ status }) => status === 'waiting')
  )
}

/** What a batch means for the store; the deliveries last. */
function statementsOf(deps: ApplyReportsDeps, batch: Batch): InStatement[] {
  const { store } = deps
  const nowMs = deps.now().getTime()
  const { runs, as, accepted, events, parked, limited, closings } = batch
  const closed = new Set(closings.map(({ run }) => run.id))
  // The event of one that had ended before was sent then.
  const ended = new Set(closings.flatMap(({ run, end }) => (end ? [run.id] : [])))
  const open = (id: string) => !closed.has(id) && runs.get(id)?.state !== 'ending'
  const told = [...runs.values()].flatMap(({ id, epoch, status }) => {
    const now = ended.has(id) ? status : batch.moved.get(id)?.status
    return now === undefined || now === 'running' ? [] : [{ runId: id, epoch, status: now, atMs: nowMs }]
  })
  const answered = events.filter(isAnswered).map(({ runId, stepId, at }) => ({ runId, stepId, atMs: Date.parse(at) }))
  const taken = accepted.filter(id => !closed.has(id))
  return [
    ...(as.length === 0 ? [] : [store.asOpen(as)]),
    ...deps.enqueueRemoteEvents.anomalies(
      events.flatMap(({ kind, runId, seq }) => (kind === 'anomaly_detected' ? [{ runId, seq, atMs: nowMs }] : [])),
    ),
    ...store.reported(events, runs, deps.dayOf(nowMs)),
    ...[...batch.late.values()].flatMap(({ run, used }) => lateUse(used, deps.dayOf(run.finishedMs ?? nowMs))),
    ...store.moved(
      [...batch.tips].filter(({ id }) => !closed.has(id)),
      [...batch.moved.values()].filter(({ runId }) => open(runId)),
    ),
    ...[...parked].map(([id, reason]) => store.parked(id, reason, nowMs)),
    ...[...limited].map(([id, untilMs]) => store.limited(id, untilMs, nowMs)),
    ...(taken.length === 0 ? [] : [store.accepted(taken)]),
    ...batch.statements,
    ...deps.enqueueRemoteEvents.expired(answered),
    ...store.expired(answered),
    ...closeRemoteRuns(closings),
    ...deps.enqueueEvent(told),
  ]
}

/** A step that asked a human is over; where no decision had come, its time was. */
const isAnswered = ({ kind, stepId }: RemoteEvent) =>
  (kind === 'step_completed' || kind === 'step_failed') && stepId.startsWith('approval-')

async function applyFrame(deps: ApplyReportsDeps, batch: Batch, frame: NodeFrame): Promise<void> {
  const { body } = frame
  if (!isOfRun(body)) return
  const run = batch.runs.get(body.value.runId)
  if (body.case === 'takeover') {
    const asItWas = run !== undefined && Number(body.value.epoch) === run.epoch && run.state !== 'queued'
    if (!asItWas || (run.nodeId !== batch.node.id && !(await deps.took(run, batch.node.id)))) {
      return drop(batch, 'not_its_run', frame)
    }
    run.nodeId = batch.node.id
    return
  }
  if (run?.nodeId !== batch.node.id) return drop(batch, 'not_its_run', frame)
  if (body.case !== 'approval' && Number(body.value.epoch) !== run.epoch) return drop(batch, 'old_epoch', frame)
  switch (body.case) {
    case 'event':
      return addEvent(batch, run, body.value, frame)
    case 'childAsk':
      if (!isTerminal(run.status)) batch.children.push({ parent: run, ask: body.value })
      return
    case 'parked': {
      const { reason, untilUnixMs } = body.value
      if (reason === RATE_LIMIT && isTime(Number(untilUnixMs))) {
        batch.limited.set(run.id, Number(untilUnixMs))
        return
      }
      if (reason !== '' && reason !== POISONED) return drop(batch, 'bad_parked', frame)
      if (!isTerminal(run.status)) batch.parked.set(run.id, reason)
      return
    }
    case 'complete':
      return addComplete(deps, batch, run, body.value, frame)
    case 'accept':
      if (!body.value.ok) return addRefusal(deps, batch, run, frame)
      batch.accepted.push(run.id)
      if (run.state === 'offered') run.state = 'accepted'
      return
    default:
      return addApproval(deps, batch, run, body.value, frame)
  }
}

async function addRefusal(deps: ApplyReportsDeps, batch: Batch, run: RemoteRun, frame: NodeFrame): Promise<void> {
  if (run.state === 'offered') {
    // The next node would begin the journal anew.
    if (run.eventSeq > 0) return drop(batch, 'bad_refusal', frame)
    batch.statements.push(...deps.store.refused(run.id))
    batch.requeued.push({ ...run })
    // What it says of the run from now on is of no run of its own.
    run.nodeId = undefined
  } else if (run.state === 'ending') {
    // Ended here before the node had it: nothing was executed.
    const end = { status: run.status as RemoteRunEnd['status'], finishedMs: run.finishedMs ?? deps.now().getTime() }
    const sealed = { ...run, outputHash: EMPTY_OUTPUT_HASH }
    const receipt = await deps.signRemoteRun(sealed, end)
    const atMs = deps.now().getTime()
    batch.closings.push({ run: sealed, sealed: { outputHash: EMPTY_OUTPUT_HASH, models: [], receipt, atMs } })
    run.state = 'done'
  }
}

function addApproval(deps: ApplyReportsDeps, batch: Batch, run: RemoteRun, asked: ApprovalAsk, frame: NodeFrame) {
  const { stepId, approvalId, reason } = asked
  const expiresMs = Number(asked.expiresUnix) * 1000
  const known = approvalReason.options.some(one => one === reason) && isTime(expiresMs)
  const before = batch.asked.get(run.id) ?? 0
  if (!known || !/^[0-9a-f-]{36}$/.test(approvalId) || before >= MOST_ASKED) return drop(batch, 'bad_approval', frame)
  batch.asked.set(run.id, before + 1)
  const nowMs = deps.now().getTime()
  batch.statements.push(deps.store.ask(run, { id: approvalId, stepId: plain(stepId), reason, expiresMs, nowMs }))
}

function addEvent(batch: Batch, run: RemoteRun, told: Event, frame: NodeFrame) {
  const seq = Number(told.eventSeq)
  if (seq <= run.eventSeq) return
  // Its head is signed.
  if (run.state === 'done') return drop(batch, 'run_ended', frame)
  const kind = eventKinds.find(known => known === told.kind)
  const atMs = Date.parse(told.at)
  const counts = [told.tokensIn, told.tokensOut, told.costNanoUsd]
  const sane = told.hash.length === 32 && isTimeText(told.at) && counts.every(isUseOfCall)
  if (seq !== run.eventSeq + 1 || kind === undefined || !sane) return drop(batch, 'bad_event', frame)
  const made: RemoteEvent = {
    runId: run.id,
    seq,
    kind,
    stepId: plain(told.stepId),
    attempt: told.attempt,
    at: told.at,
    hash: toHex(told.hash),
    tokensIn: Number(told.tokensIn),
    tokensOut: Number(told.tokensOut),
    costNano: Number(told.costNanoUsd),
    unpricedCalls: told.unpriced ? 1 : 0,
    cut: told.cut,
    model: told.model === '' ? undefined : plain(told.model),
  }
  const moved = movedBy(made, atMs, batch.moved.get(run.id))
  if (Object.values(spentWith(run.spent, moved)).some(total => total > MOST_OF_RUN))
    return drop(batch, 'bad_event', frame)
  batch.events.push(made)
  batch.tips.add(run)
  batch.parked.delete(run.id)
  batch.limited.delete(run.id)
  run.eventSeq = seq
  run.tip = made.hash
  batch.moved.set(run.id, moved)
  if (isTerminal(run.status)) batch.late.set(run.id, { run, used: moved })
}

const spentWith = (before: RemoteRun['spent'], more: RemoteRun['spent']): RemoteRun['spent'] => ({
  tokensIn: before.tokensIn + more.tokensIn,
  tokensOut: before.tokensOut + more.tokensOut,
  costNano: before.costNano + more.costNano,
})

/** How far a run has come by one event more. */
function movedBy(made: RemoteEvent, atMs: number, before: Moved | undefined): Moved {
  return {
    runId: made.runId,
    status: made.kind === 'step_waiting' ? 'waiting' : 'running',
    atMs: before?.atMs ?? atMs,
    tokensIn: made.tokensIn + (before?.tokensIn ?? 0),
    tokensOut: made.tokensOut + (before?.tokensOut ?? 0),
    costNano: made.costNano + (before?.costNano ?? 0),
    unpricedCalls: made.unpricedCalls + (before?.unpricedCalls ?? 0),
    model: made.model ?? before?.model,
  }
}

async function addComplete(
  deps: ApplyReportsDeps,
  batch: Batch,
  run: RemoteRun,
  told: Complete,
  frame: NodeFrame,
): Promise<void> {
  if (run.state === 'done' || batch.sealing.some(one => one.run === run)) return
  const { $typeName: _, nodeSignature, ...said } = told
  const key = batch.node.signKey
  const signed =
    key !== undefined && (await deps.verifySignature(key, Uint8Array.from(nodeSignature), completeMessage(said)))
  if (!signed) return drop(batch, 'bad_signature', frame)
  const counts = [said.tokensIn, said.tokensOut, said.costNanoUsd, said.eventCount]
  if (!counts.every(isCount) || !isTime(Number(said.finishedUnixMs)) || said.models.length > 200)
    return drop(batch, 'bad_complete', frame)
  batch.sealing.push({ run, frame: told })
}

/** The head that the node reports is the one that was streamed, or the run is not what it says. */
async function sealRun(
  deps: ApplyReportsDeps,
  batch: Batch,
  { run, frame: told }: Batch['sealing'][number],
): Promise<void> {
  const status = (['succeeded', 'failed', 'cancelled'] as const).find(known => known === told.status)
  const follows = toHex(told.head) === run.tip && Number(told.eventCount) === run.eventSeq
  const finishedMs = isTerminal(run.status) ? (run.finishedMs ?? deps.now().getTime()) : Number(told.finishedUnixMs)
  if (!follows || status === undefined || told.inputHash.length !== 32 || toHex(told.inputHash) !== run.inputHash) {
    deps.log.error('a node reports an end that does not follow from what it streamed', {
      runId: run.id,
      nodeId: batch.node.id,
      status: told.status,
      head: toHex(told.head),
      streamed: run.tip,
    })
  }
  const counts = [told.tokensIn, told.tokensOut, told.costNanoUsd]
  const fine = follows && status !== undefined && toHex(told.inputHash) === run.inputHash && counts.every(isUseOfRun)
  const end: RemoteRunEnd = fine
    ? {
        status,
        finishedMs,
        day: deps.dayOf(finishedMs),
        errorCode: runErrorCodes.find(code => code === told.errorCode),
        errorStep: told.errorStep === '' ? undefined : plain(told.errorStep),
        isolationUsed: backends.find(known => known === told.isolation),
        spent: {
          tokensIn: Number(told.tokensIn),
          tokensOut: Number(told.tokensOut),
          costNano: Number(told.costNanoUsd),
        },
      }
    : {
        status: 'failed',
        finishedMs,
        day: deps.dayOf(finishedMs),
        errorCode: 'internal',
        errorMessage: 'the node reported an end that does not follow from its events',
      }
  const already = isTerminal(run.status)
  const late = batch.late.get(run.id)
  batch.as.push({ id: run.id, open: !already })
  // Ended here first: that stands, and the node's journal is sealed under it.
  const stands = already ? (run.status as RemoteRunEnd['status']) : end.status
  const outputHash = fine && stands === status ? toHex(told.outputHash) : EMPTY_OUTPUT_HASH
  const sealed: RemoteRun = {
    ...run,
    status: stands,
    outputHash,
    models: told.models.map(plain),
    finishedMs,
    ...(!already && end.spent && { spent: end.spent }),
    ...(late && { spent: spentWith(run.spent, late.used) }),
    ...(end.isolationUsed !== undefined && { isolationUsed: end.isolationUsed }),
    ...(fine && {
      node: {
        publicKey: toBase64(batch.node.signKey ?? new Uint8Array()),
        signature: toBase64(told.nodeSignature),
      },
    }),
  }
  if (!already) {
    deps.turn.ending(run)
    batch.turns.push(run)
    batch.ends.push({ status: end.status, costNano: sealed.spent.costNano })
  }
  const receipt = await deps.signRemoteRun(sealed, { status: stands, finishedMs })
  const { models, node } = sealed
  batch.closings.push({
    run: sealed,
    end: already ? undefined : end,
    began: batch.moved.get(run.id),
    sealed: { outputHash, models, ...(node && { node }), receipt, atMs: deps.now().getTime() },
  })
  batch.moved.delete(run.id)
  batch.runs.set(run.id, { ...sealed, state: 'done' })
}

/** Which credentials the node has kept, or why it could not. */
async function storeCredentialReports(
  deps: ApplyReportsDeps,
  node: NodeRow,
  frames: readonly NodeFrame[],
): Promise<void> {
  const told = frames.flatMap(({ body }) => (body.case === 'secretAck' ? [body.value] : []))
  if (told.length === 0) return
  await deps.db.write(
    told.map(({ ref, ok, error }) => ({
      // Only of what its pool was given.
      sql: `insert into node_credentials (node_id, ref, at_ms, error) select ?1, ref, ?3, ?4 from pool_credentials
        where tenant_id = ?5 and pool = ?6 and ref = ?2 on conflict do update set at_ms = ?3, error = ?4`,
      args: [
        node.id,
        plain(ref),
        deps.now().getTime(),
        ok ? null : plain(error) || 'refused',
        node.tenantId,
        node.pool,
      ],
    })),
  )
}

async function writeUnlessMoved(deps: ApplyReportsDeps, statements: InStatement[]): Promise<boolean> {
  try {
    await deps.db.write(statements)
    return true
  } catch (error) {
    if (isMoved(error)) return false
    throw error
  }
}

function drop({ dropped }: Batch, why: string, { body }: NodeFrame): void {
  const kind = `${why} ${body.case ?? 'none'}`
  dropped.set(kind, (dropped.get(kind) ?? 0) + 1)
}

/** A line for each kind: a node may say as many frames as it likes. */
function tellDropped(deps: ApplyReportsDeps, { dropped, node }: Batch): void {
  for (const [kind, frames] of dropped) {
    const [reason = '', frame] = kind.split(' ')
    deps.dropped.add(frames, { reason })
    deps.log.warn('frames of a node were dropped', { reason, frame, frames, nodeId: node.id })
  }
}

function isOfRun(
  body: NodeFrame['body'],
): body is Extract<
  typeof body,
  { case: 'accept' | 'event' | 'complete' | 'approval' | 'childAsk' | 'takeover' | 'parked' }
> {
  return (['accept', 'event', 'complete', 'approval', 'childAsk', 'takeover', 'parked'] as const).some(
    one => one === body.case,
  )
}

/** The range that a number of the wire must be in. */
const isCount = (value: bigint): boolean => value >= 0n && value <= BigInt(Number.MAX_SAFE_INTEGER)
/** Far beyond any call and any run, in tokens and in billionths of a dollar: what is added up over days and agents stays exact. */
const MOST_OF_CALL = 2 ** 42
const MOST_OF_RUN = 2 ** 45
const isUseOfCall = (value: bigint): boolean => value >= 0n && value <= BigInt(MOST_OF_CALL)
const isUseOfRun = (value: bigint): boolean => value >= 0n && value <= BigInt(MOST_OF_RUN)
/** Beyond what the limits of an agent let a run ask; they are read together. */
const MOST_ASKED = 10_000
/** Within the years that have four digits. */
const isTime = (ms: number): boolean => ms >= 0 && ms < 253_402_300_800_000
/** As it is written, and with nothing else that a parser of dates would pass over. */
const isTimeText = (text: string): boolean => isTime(Date.parse(text)) && new Date(text).toISOString() === text

function plain(text: string): string {
  return text.slice(0, 512).toWellFormed().replaceAll('\0', '\uFFFD')
}
