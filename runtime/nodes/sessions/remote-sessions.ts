import type { InStatement } from '@libsql/client/web'
import { ApiError } from '../../../shared/http/api-error.ts'
import { type Db, type RowOf, rowsOf } from '../../../shared/sql/db.ts'
import type { SessionMessage } from '../../../shared/wire/runtime/session.ts'
import type { remoteSessions as remoteSessionsTable } from '../../schema/tables.ts'
import type { TurnEnd } from '../../sessions/session.ts'
import type { SessionStore, TurnEnds } from '../../sessions/store.ts'
import type { ReachableNodes } from '../peers/reachable-nodes.ts'
import type { NodeLink } from '../registry/node-link.ts'
import type { NodeStore } from '../registry/store.ts'
import { commandTarget, fallbackNode } from '../runs/fallback-node.ts'
import type { RemoteReads } from '../runs/remote-reads.ts'
import { offline } from '../runs/remote-reads.ts'
import type { RemoteRunStore } from '../runs/remote-run-store.ts'

/** Where a conversation is held that is not held here. */
export interface RemoteSession {
  sessionId: string
  tenantId: string
  pool: string
  nodeId: string
}

export interface RemoteSessionsDeps {
  db: Db
  remote: RemoteRunStore
  nodes: Pick<NodeStore, 'frame' | 'sharing'>
  reachableNodes: ReachableNodes
  data: RemoteReads
  engaged: () => boolean
}

export type RemoteSessions = ReturnType<typeof remoteSessions>

/** The conversations that nodes hold. */
export function remoteSessions(deps: RemoteSessionsDeps) {
  const { db, nodes, reachableNodes, data } = deps

  return {
    get: (id: string) => sessionOf(deps, id),

    /** For the transaction that opens one. */
    opened: ({ sessionId, tenantId, pool, nodeId }: RemoteSession): InStatement => ({
      sql: 'insert into remote_sessions (session_id, tenant_id, pool, node_id) values (?, ?, ?, ?)',
      args: [sessionId, tenantId, pool, nodeId],
    }),

    /** The node that has it, which has to be connected for a turn, here or elsewhere. */
    async connected(id: string): Promise<RemoteSession | undefined> {
      const session = await sessionOf(deps, id)
      if (session === undefined) return undefined
      const link = await fallbackNode(reachableNodes, nodes, session.nodeId)
      if (link === undefined || !(await link.here())) throw offline(`session ${id}`)
      return { ...session, nodeId: link.nodeId }
    },

    /** The node that a new one is opened at: one that is connected. */
    async pick(tenantId: string, pool: string, able: (backends: NodeLink['backends']) => boolean): Promise<string> {
      for (const node of await reachableNodes.of(tenantId, pool)) {
        if (!node.draining && able(node.backends) && (await node.here())) return node.nodeId
      }
      throw new ApiError('node_offline', `no node of pool ${pool} that could hold a session is connected`)
    },

    /** The store as routes and services see it, where some of the sessions are on nodes. */
    store(own: SessionStore): SessionStore {
      async function wordsOf<T extends { end: TurnEnd }>(id: string, ends: T[]): Promise<T[]> {
        const session = ends.length === 0 ? undefined : await sessionOf(deps, id)
        return session ? withWords(deps, session, ends) : ends
      }
      const pageOf = async (id: string, { ends, isLast }: TurnEnds) => ({ ends: await wordsOf(id, ends), isLast })
      return {
        ...own,
        async messages(id): Promise<SessionMessage[]> {
          const session = await sessionOf(deps, id)
          if (session === undefined) return own.messages(id)
          const found = await data.messages(session.nodeId, id)
          if (found === undefined) throw offline(`what was said in session ${id}`)
          return found
        },
        async turn(turnId) {
          const end = await own.turn(turnId)
          if (end === undefined) return undefined
          const [one] = await wordsOf(end.data.sessionId, [{ end }])
          return one?.end
        },
        endsAfter: async (id, eventId, nowMs) => pageOf(id, await own.endsAfter(id, eventId, nowMs)),
        lastCompleted: async (id, most, eventId) => pageOf(id, await own.lastCompleted(id, most, eventId)),
        async stop(id, nowMs) {
          const session = await sessionOf(deps, id)
          const turnId = await own.stop(id, nowMs)
          if (session === undefined) return turnId
          const { node, order } = await orderStop(deps, session, false)
          await db.write([order])
          reachableNodes.wake(node)
          return turnId
        },
        async remove(id, nowMs) {
          const session = await sessionOf(deps, id)
          const removed = await own.remove(id, nowMs)
          if (session === undefined) return removed
          const { node, order } = await orderStop(deps, session, true)
          await db.write([order, { sql: 'delete from remote_sessions where session_id = ?', args: [id] }])
          reachableNodes.wake(node)
          return removed
        },
      }
    },
  }
}

async function sessionOf(deps: RemoteSessionsDeps, id: string): Promise<RemoteSession | undefined> {
  if (!deps.engaged()) return undefined
  const sql = 'select session_id, tenant_id, pool, node_id from remote_sessions where session_id = ?'
  const [row] = rowsOf<RowOf<typeof remoteSessionsTable>>(await deps.db.execute({ sql, args: [id.toWellFormed()] }))
  return row && { sessionId: row.session_id, tenantId: row.tenant_id, pool: row.pool, nodeId: row.node_id }
}

async function orderStop(
  deps: RemoteSessionsDeps,
  session: RemoteSession,
  remove: boolean,
): Promise<{ node: string; order: InStatement }> {
  const node = await commandTarget(deps.reachableNodes, deps.nodes)(session.nodeId)
  const { controlBytes } = await import('../../../shared/tunnel/control-bytes.ts')
  const frame = controlBytes({ case: 'sessionStop', value: { sessionId: session.sessionId, remove } })
  return { node, order: deps.nodes.frame(node, frame) }
}

/** The words of ends of turns: those of the node, where it says how the turn ended as it is known here. */
async function withWords<T extends { end: TurnEnd }>(
  deps: RemoteSessionsDeps,
  session: RemoteSession,
  ends: readonly T[],
): Promise<T[]> {
  if (ends.length === 0) return []
  const ids = ends.map(({ end }) => end.data.turnId)
  const told = await deps.data.turns(session.nodeId, ids)
  const here = told && (await deps.remote.these(ids))
  return ends.map(one => {
    const { turnId, sessionId } = one.end.data
    const there = told?.get(turnId)
    if (there?.event === one.end.event) return { ...one, end: there }
    if (one.end.event === 'message_completed') throw offline(`turn ${turnId}`)
    const { errorCode: code = 'cancelled', errorMessage: error = 'the turn was cancelled' } = here?.get(turnId) ?? {}
    return { ...one, end: { event: 'message_error', data: { sessionId, turnId, code, error } } }
  })
}
