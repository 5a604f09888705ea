import type { InStatement } from '@libsql/client/web'
import type { z } from 'zod'
import { ApiError } from '../../shared/http/api-error.ts'
import { isTerminal } from '../../shared/wire/runtime/run.ts'
import type { MessageCreate, Session, sessionCreate, TurnReply } from '../../shared/wire/runtime/session.ts'
import { fromWords } from '../budgets/refusal.ts'
import { canonicalBody } from '../http/idempotent.ts'
import { notFound } from '../http/own-tenant.ts'
import { redactionOf } from '../privacy/redaction.ts'
import type { AgentVersion, CreationStatements, RunService } from '../runs/service.ts'
import type { RunStore } from '../runs/store.ts'
import type { Live } from './live-sessions.ts'
import { type SessionRow, type TurnEnd, unpriced } from './session.ts'
import type { Machines } from './session-vms.ts'
import { isDeletedAgentError, isNotActive, type SessionStore } from './store.ts'
import { turnInput } from './turn-input.ts'

export interface SessionServiceDeps {
  store: SessionStore
  live: Live
  runs: Pick<RunService, 'begin' | 'end'>
  /** The runs of its turns, where they are to be deleted with it. */
  turnRuns: Pick<RunStore, 'ofSession' | 'remove'>
  summary: RunStore['summary']
  currentByName: (tenantId: string, name: string) => Promise<AgentVersion | undefined>
  findVersion: (tenantId: string, versionId: string) => Promise<AgentVersion | undefined>
  /** The node that the sessions of that version are held at; undefined: this process. Throws where no node can hold them. */
  holdSession: (tenantId: string, version: AgentVersion) => Promise<Held | undefined>
  machines: Machines
  turnTimeoutMs: number
  newId: () => string
  now: () => Date
}

/** A place elsewhere, with what writes it down. */
export interface Held {
  opened: (sessionId: string) => InStatement
}

export type SessionService = ReturnType<typeof sessionService>

/** Conversations: opening, talking, stopping (docs/spec/runtime.md §7). */
export function sessionService(deps: SessionServiceDeps) {
  const { store, live, runs, newId, now, machines } = deps
  const wait = (sessionId: string, turnId: string) =>
    waitForTurn({ store, live, timeoutMs: deps.turnTimeoutMs }, sessionId, turnId)

  return {
    open: (tenantId: string, wanted: z.output<typeof sessionCreate>, also: (id: string) => InStatement[]) =>
      openSession(deps, tenantId, wanted, also),

    withVm: (wire: Session) => withVm(deps, wire),

    /** Starts a turn and waits for it; a caller who goes away changes nothing about it. */
    async send(session: SessionRow, message: MessageCreate, also: CreationStatements): Promise<TurnReply> {
      const input = canonicalBody(turnInput(message))
      refuseUnlessActive(session)
      const version = await deps.findVersion(session.tenantId, session.versionId)
      if (!version) throw notFound('agent version', session.versionId)
      const redact = redactionOf(version.manifest)
      const hint =
        message.systemHint === undefined ? undefined : (redact?.text(message.systemHint) ?? message.systemHint)
      const turnId = newId()
      const turn = wait(session.id, turnId)
      const run = {
        tenantId: session.tenantId,
        input,
        labels: '{}',
        sessionId: session.id,
        trigger: { kind: 'session' as const, ref: session.id },
        also: store.beginTurn(session.id, turnId, hint, now().getTime()),
      }
      try {
        await runs.begin(run, version, also, turnId)
      } catch (error) {
        turn.stop()
        if (!isNotActive(error)) throw error
        refuseUnlessActive(await findSession(deps, session.id))
        // The turn that was in the way has ended since.
        throw busy(session)
      }
      return replyTo(deps, session.id, turnId, await turn.done)
    },

    /** The reply of a turn that an earlier call has started. */
    async replyAgain(sessionId: string, turnId: string): Promise<TurnReply> {
      // Most often it has ended; where its node is away, this says so at once.
      const end = await store.turn(turnId)
      if (end) return replyOf(sessionId, end)
      await findSession(deps, sessionId)
      if (!(await deps.summary(turnId))) throw notFound('run', turnId)
      const turn = wait(sessionId, turnId)
      await live.look(sessionId)
      return replyTo(deps, sessionId, turnId, await turn.done)
    },

    /** For good; its turn is cancelled, and may say nothing more. */
    async stop({ id }: SessionRow): Promise<Session> {
      const turnId = await store.stop(id, now().getTime())
      await live.look(id)
      if (turnId !== undefined) await runs.end(turnId, 'the session was stopped')
      await machines.release(id)
      return (await findSession(deps, id)).wire
    },

    /** First its runs, so that a deletion that was cut off can be called again. */
    async removeWithRuns(session: SessionRow): Promise<void> {
      const { id } = session
      await deleteRuns(deps, id)
      // No further turn begins.
      await this.stop(session)
      await deleteRuns(deps, id)
      await this.remove(session)
    },

    async remove({ id }: SessionRow): Promise<void> {
      const removed = await store.remove(id, now().getTime())
      if (!removed) throw notFound('session', id)
      await live.look(id)
      if (removed.turnId !== undefined) await runs.end(removed.turnId, 'the session was deleted')
      await machines.release(id)
    },
  }
}

async function openSession(
  deps: SessionServiceDeps,
  tenantId: string,
  { agentName, title, labels = {}, environment }: z.output<typeof sessionCreate>,
  also: (id: string) => InStatement[],
): Promise<Session> {
  const version = await deps.currentByName(tenantId, agentName)
  if (!version) throw notFound('agent', agentName)
  const id = deps.newId()
  const held = await deps.holdSession(tenantId, version)
  if (held && environment !== undefined) {
    throw new ApiError('validation_failed', 'environment: sessions on nodes do not take one in this version')
  }
  if (held === undefined) await deps.machines.acquire(id, agentName, version.manifest)
  const session = {
    id,
    tenantId,
    agentName,
    agentId: version.agentId,
    versionId: version.versionId,
    title: title === undefined ? null : canonicalBody(title),
    labels: canonicalBody(labels),
    environment: environment === undefined ? null : canonicalBody(environment),
    createdMs: deps.now().getTime(),
  }
  try {
    await deps.store.create(session, [...(held ? [held.opened(id)] : []), ...also(id)])
  } catch (error) {
    await deps.machines.release(id)
    throw isDeletedAgentError(error) ? notFound('agent', agentName) : error
  }
  return withVm(deps, (await findSession(deps, id)).wire)
}

/** So many deletions at once: each is a commit of its own. */
const AT_ONCE = 8

async function deleteRuns({ turnRuns }: SessionServiceDeps, sessionId: string): Promise<void> {
  const runs = await turnRuns.ofSession(sessionId)
  const open = runs.find(({ status }) => !isTerminal(status))
  if (open) {
    const message = `run ${open.id} of session ${sessionId} is ${open.status}: stop the session, and delete it when the run has ended`
    throw new ApiError('run_not_terminal', message)
  }
  for (let at = 0; at < runs.length; at += AT_ONCE) {
    await Promise.all(runs.slice(at, at + AT_ONCE).map(({ id }) => turnRuns.remove(id)))
  }
}

async function findSession(deps: SessionServiceDeps, id: string): Promise<SessionRow> {
  const session = await deps.store.get(id)
  if (!session) throw notFound('session', id)
  return session
}

/** With what is known of its own machine. */
function withVm(deps: SessionServiceDeps, wire: Session): Session {
  const vm = deps.machines.of(wire.id)
  return vm ? { ...wire, vm } : wire
}

async function replyTo(
  deps: SessionServiceDeps,
  sessionId: string,
  turnId: string,
  outcome: Awaited,
): Promise<TurnReply> {
  switch (outcome.is) {
    case 'ended':
      return replyOf(sessionId, outcome.end)
    case 'stopped':
      throw new ApiError('session_stopped', `session ${sessionId} was stopped before its turn ${turnId} ended`)
    case 'closed':
      // The store may be gone by now.
      return { turnId, text: '', tokensIn: 0, tokensOut: 0, costUsd: 0, sessionId, status: 'processing' }
    default: {
      const { tokensIn = 0, tokensOut = 0, costUsd = 0, unpricedCalls = 0 } = (await deps.summary(turnId)) ?? {}
      const used = { tokensIn, tokensOut, costUsd, ...unpriced(unpricedCalls) }
      return { turnId, text: '', ...used, sessionId, status: outcome.is }
    }
  }
}

function refuseUnlessActive(session: SessionRow): void {
  if (session.status === 'processing') throw busy(session)
  if (session.status === 'stopped') {
    throw new ApiError('session_stopped', `session ${session.id} is stopped: open a new one`)
  }
}

function busy({ id }: SessionRow): ApiError<'session_busy'> {
  return new ApiError('session_busy', `session ${id} is busy with a turn: wait for it to end, or stop the session`)
}

function replyOf(sessionId: string, { event, data }: TurnEnd): TurnReply {
  if (event === 'message_completed') {
    const { turnId, text, usage, finish = 'complete' } = data
    return { turnId, text, ...usage, sessionId, status: 'completed', finish }
  }
  if (data.code === 'agent_deleted') {
    throw new ApiError('session_stopped', `session ${sessionId} ended with its agent, before its turn ${data.turnId}`)
  }
  if (data.code === 'model_error') throw new ApiError('upstream_failed', data.error)
  if (data.code === 'budget_exceeded') {
    throw new ApiError('budget_exceeded', `turn ${data.turnId}: ${data.error}`, {
      members: { ...fromWords(data.error) },
    })
  }
  throw new ApiError('internal', `turn ${data.turnId} failed, ${data.code}: ${data.error}`)
}

/** What a caller that waits for a turn gets. */
type Awaited =
  | { is: 'ended'; end: TurnEnd }
  | { is: 'waiting' } // for a human
  | { is: 'processing' } // still, after all the time there was
  | { is: 'closed' } // the service stops; the turn goes on with the next one
  | { is: 'stopped' } // with its session, or deleted with it

interface WaitDeps {
  store: Pick<SessionStore, 'turn'>
  live: Live
  timeoutMs: number
}

/** Waits for the end of a turn, wherever it is executed. Begin before the turn does, and nothing of it is missed. */
function waitForTurn({ store, live, timeoutMs }: WaitDeps, sessionId: string, turnId: string) {
  const { promise, resolve } = Promise.withResolvers<Awaited>()
  /** Its end is durable before the session moves on, so one that is not found has not started. */
  const lookUp = (otherwise?: Awaited) =>
    store.turn(turnId).then(
      end => {
        if (end) resolve({ is: 'ended', end })
        else if (otherwise) resolve(otherwise)
      },
      () => undefined,
    )
  const leave = live.watch(sessionId, {
    told(event) {
      if (event.event !== 'message_completed' && event.event !== 'message_error') return
      const { id: _id, ...end } = event
      if (end.data.turnId === turnId) resolve({ is: 'ended', end })
    },
    moved(state) {
      if (state === undefined) resolve({ is: 'stopped' })
      else if (state.status === 'stopped') void lookUp({ is: 'stopped' })
      else if (state.turnId !== turnId) void lookUp()
      else if (state.turnStatus === 'waiting') resolve({ is: 'waiting' })
    },
    closed: () => resolve({ is: 'closed' }),
  })
  const timer = setTimeout(() => resolve({ is: 'processing' }), timeoutMs)
  const stop = () => {
    clearTimeout(timer)
    leave()
  }
  return { done: promise.finally(stop), stop: () => resolve({ is: 'processing' }) }
}
