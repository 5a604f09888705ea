import type { InStatement, ResultSet } from '@libsql/client/web'
import { type Db, type RowOf, readRows, rowsOf } from '../../../shared/sql/db.ts'
import { storableText } from '../../../shared/sql/sql-values.ts'
import type { Labels } from '../../../shared/wire/runtime/conventions.ts'
import type { NodeBackend } from '../../../shared/wire/runtime/node.ts'
import { type PageOf, pageSql, readPage } from '../../http/page.ts'
import type { nodeFrames as nodeFramesTable } from '../../schema/tables.ts'
import { type NodeRow, type StoredNode, toNodeRow } from './node.ts'

export interface NewNode {
  id: string
  tenantId: string
  name: string
  pool: string
  labels: Labels
  createdMs: number
  enrolHash: string
  enrolExpiresMs: number
}

export interface Enrolled {
  signKey: Uint8Array
  boxKey: Uint8Array
  version: string
  os: string
  arch: string
  /** A pool gets its key with its first node. */
  newPoolKey: Uint8Array | undefined
}

/** What a node says of itself when it comes. */
export interface Arrival {
  backends: readonly NodeBackend[]
  slots: number
  vcpus: number
  memoryMb: number
  version: string
  storeId: string | null
}

export type NodeStore = ReturnType<typeof nodeStore>

const ELSEWHERE = 'peer_url <> ? and signed_off = 0 and last_seen_ms > ?'

/** One that is damaged gets no run, and keeps none from the others. */
const readableNodes = (found: Pick<ResultSet, 'rows'>): NodeRow[] =>
  readRows(rowsOf<StoredNode>(found), toNodeRow, () => undefined)

const nodesIn = (found: Pick<ResultSet, 'rows'>): NodeRow[] => rowsOf<StoredNode>(found).map(toNodeRow)

/** `peer` is the address under which other control planes of this store reach this one; null: they do not. */
export function nodeStore(db: Db, peer: string | null) {
  return {
    ...nodeTokens(db),
    ...nodePools(db),
    ...nodePresence(db, peer),
    ...nodeFrames(db),

    insert({ id, tenantId, name, pool, labels, createdMs, enrolHash, enrolExpiresMs }: NewNode): InStatement {
      return {
        sql: `insert into nodes (id, tenant_id, name, pool, labels, created_ms, enrol_hash, enrol_expires_ms)
          values (?, ?, ?, ?, ?, ?, ?, ?)`,
        args: [id, tenantId, JSON.stringify(name), pool, JSON.stringify(labels), createdMs, enrolHash, enrolExpiresMs],
      }
    },

    async get(id: string): Promise<NodeRow | undefined> {
      return nodesIn(await db.execute({ sql: 'select * from nodes where id = ?', args: [storableText(id)] }))[0]
    },

    async list(tenantId: string, page: PageOf): Promise<NodeRow[]> {
      const { where, order, args } = pageSql(page)
      const sql = `select * from nodes where tenant_id = ? ${where} ${order}`
      const found = await db.execute({ sql, args: [tenantId, ...args] })
      return readPage(page, rowsOf<StoredNode>(found), toNodeRow)
    },

    /** The nodes that a tenant's runs may go to. */
    async enrolled(tenantId: string): Promise<NodeRow[]> {
      const sql = 'select * from nodes where tenant_id = ? and enrolled_ms is not null order by created_ms, id'
      return readableNodes(await db.execute({ sql, args: [tenantId] }))
    },

    async all(): Promise<NodeRow[]> {
      return readableNodes(await db.execute('select * from nodes where enrolled_ms is not null'))
    },

    async announced(): Promise<boolean> {
      return (await db.execute('select 1 from nodes limit 1')).rows.length > 0
    },

    async setDraining(id: string, draining: boolean): Promise<NodeRow | undefined> {
      const sql = 'update nodes set draining = ? where id = ? returning *'
      return nodesIn(await db.execute({ sql, args: [draining ? 1 : 0, id] }))[0]
    },

    /** Runs that end on this node or whose texts are there; `open` are those that have not ended. */
    async holds(id: string): Promise<{ open: number; data: number }> {
      const found = await db.execute({
        sql: `select coalesce(sum(state in ('offered', 'accepted', 'ending')), 0) as open, count(*) as data from remote_runs where node_id = ?`,
        args: [id],
      })
      const { open, data } = rowsOf<{ open: number; data: number }>(found)[0]!
      return { open, data }
    },

    async remove(id: string): Promise<void> {
      await db.write([
        { sql: 'delete from node_tokens where node_id = ?', args: [id] },
        { sql: 'delete from node_nonces where node_id = ?', args: [id] },
        { sql: 'delete from node_frames where node_id = ?', args: [id] },
        { sql: 'delete from node_credentials where node_id = ?', args: [id] },
        {
          // A pool without a node has no holder of its key: the next node starts with a new one.
          sql: `delete from node_pools where exists (select 1 from nodes n where n.id = ?1 and n.tenant_id = node_pools.tenant_id
            and n.pool = node_pools.name) and not exists (select 1 from nodes n where n.id <> ?1
            and n.tenant_id = node_pools.tenant_id and n.pool = node_pools.name and n.enrolled_ms is not null)`,
          args: [id],
        },
        {
          // And what was sealed to that key opens nowhere any more.
          sql: `delete from pool_credentials where exists (select 1 from nodes n where n.id = ?1
            and n.tenant_id = pool_credentials.tenant_id and n.pool = pool_credentials.pool) and not exists
            (select 1 from node_pools p where p.tenant_id = pool_credentials.tenant_id and p.name = pool_credentials.pool)`,
          args: [id],
        },
        { sql: 'delete from nodes where id = ?', args: [id] },
      ])
    },
  }
}

/** How a node proves who it is: its enrolment and the tokens after it. */
function nodeTokens(db: Db) {
  return {
    async byEnrolHash(hash: string, nowMs: number): Promise<NodeRow | undefined> {
      const sql = 'select * from nodes where enrol_hash = ? and enrol_expires_ms > ?'
      return nodesIn(await db.execute({ sql, args: [hash, nowMs] }))[0]
    },

    /** Uses the token up and gives the node its keys, in one transaction. False: it was used or too late. */
    async enrol(
      node: Pick<NodeRow, 'id' | 'tenantId' | 'pool'>,
      hash: string,
      enrolled: Enrolled,
      token: { hash: string; expiresMs: number },
      nowMs: number,
    ): Promise<boolean> {
      const { signKey, boxKey, version, os, arch, newPoolKey } = enrolled
      const mine = 'exists (select 1 from nodes where id = ?1 and enrolled_ms = ?2 and sign_key = ?3)'
      const [used] = await db.write([
        {
          sql: `update nodes set enrol_hash = null, enrol_expires_ms = null, enrolled_ms = ?, sign_key = ?, box_key = ?,
              version = ?, os = ?, arch = ? where id = ? and enrol_hash = ? and enrol_expires_ms > ?`,
          args: [nowMs, signKey, boxKey, version, os, arch, node.id, hash, nowMs],
        },
        {
          sql: `insert into node_tokens (hash, node_id, expires_ms) select ?4, ?1, ?5 where ${mine}`,
          args: [node.id, nowMs, signKey, token.hash, token.expiresMs],
        },
        ...(newPoolKey
          ? [
              {
                sql: `insert into node_pools (tenant_id, name, public_key, created_ms) select ?4, ?5, ?6, ?2 where ${mine}`,
                args: [node.id, nowMs, signKey, node.tenantId, node.pool, newPoolKey],
              },
            ]
          : []),
      ])
      return used?.rowsAffected === 1
    },

    async nodeOfToken(hash: string, nowMs: number): Promise<{ node: NodeRow; expiresMs: number } | undefined> {
      const found = await db.execute({
        sql: `select n.*, t.expires_ms from node_tokens t join nodes n on n.id = t.node_id
          where t.hash = ? and t.expires_ms > ?`,
        args: [hash, nowMs],
      })
      const [row] = rowsOf<StoredNode & { expires_ms: number }>(found)
      return row && { node: toNodeRow(row), expiresMs: row.expires_ms }
    },

    /** A further token for a node that has proven itself. False: the nonce was used before. */
    async refresh(
      nodeId: string,
      nonce: { text: string; atMs: number; forgetBeforeMs: number },
      token: { hash: string; expiresMs: number },
      nowMs: number,
    ): Promise<boolean> {
      const results = await db.write([
        { sql: 'delete from node_nonces where node_id = ? and at_ms < ?', args: [nodeId, nonce.forgetBeforeMs] },
        { sql: 'delete from node_tokens where node_id = ? and expires_ms <= ?', args: [nodeId, nowMs] },
        {
          sql: `insert into node_tokens (hash, node_id, expires_ms) select ?, ?, ?
            where not exists (select 1 from node_nonces where node_id = ? and nonce = ?)`,
          args: [token.hash, nodeId, token.expiresMs, nodeId, nonce.text],
        },
        {
          sql: 'insert into node_nonces (node_id, nonce, at_ms) values (?, ?, ?) on conflict do nothing',
          args: [nodeId, nonce.text, nonce.atMs],
        },
      ])
      return results[2]?.rowsAffected === 1
    },
  }
}

/** The keys that inputs for nodes are sealed to. */
function nodePools(db: Db) {
  return {
    async poolKey(tenantId: string, pool: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
      const sql = 'select public_key from node_pools where tenant_id = ? and name = ?'
      const [row] = rowsOf<{ public_key: ArrayBuffer }>(await db.execute({ sql, args: [tenantId, pool] }))
      return row && new Uint8Array(row.public_key)
    },

    /** The pool of a tenant that has no other. */
    async onlyPool(tenantId: string): Promise<string | undefined> {
      const sql = 'select name from node_pools where tenant_id = ? limit 2'
      const rows = rowsOf<{ name: string }>(await db.execute({ sql, args: [tenantId] }))
      return rows.length === 1 ? rows[0]?.name : undefined
    },
  }
}

/** What is heard of a node, and at which control plane. */
function nodePresence(db: Db, peer: string | null) {
  return {
    async arrived(
      id: string,
      { backends, slots, vcpus, memoryMb, version, storeId }: Arrival,
      nowMs: number,
    ): Promise<void> {
      await db.execute({
        sql: `update nodes set backends = ?, slots = ?, vcpus = ?, memory_mb = ?, version = ?, signed_off = 0, lost_reported = 0,
          last_seen_ms = ?, store_id = ?, peer_url = ? where id = ?`,
        args: [JSON.stringify(backends), slots, vcpus, memoryMb, version, nowMs, storeId, peer, id],
      })
    },

    /** Whether it is drained, which another control plane may have decided; undefined: it was removed. */
    async seen(id: string, nowMs: number, activeRuns: number): Promise<{ draining: boolean } | undefined> {
      const updated = await db.execute({
        sql: `update nodes set last_seen_ms = ?, active_runs = ?, signed_off = 0, peer_url = ? where id = ?
          returning draining`,
        args: [nowMs, activeRuns, peer, id],
      })
      const [row] = rowsOf<Pick<StoredNode, 'draining'>>(updated)
      return row && { draining: row.draining === 1 }
    },

    /** Its stream with this control plane is over. */
    async left(id: string): Promise<void> {
      if (peer === null) return
      await db.execute({ sql: 'update nodes set peer_url = null where id = ? and peer_url = ?', args: [id, peer] })
    },

    /** Of these nodes, those that were heard since then by another control plane which this one can ask. */
    async elsewhere(of: { ids: readonly string[] } | { tenantId: string; pool: string }, sinceMs: number) {
      if (peer === null) return []
      const [these, args] =
        'ids' in of
          ? ['id in (select value from json_each(?))', [JSON.stringify(of.ids)]]
          : ['tenant_id = ? and pool = ?', [of.tenantId, of.pool]]
      const found = await db.execute({
        sql: `select * from nodes where ${these} and ${ELSEWHERE} order by created_ms, id`,
        args: [...args, peer, sinceMs],
      })
      return nodesIn(found)
    },

    /** The other control planes to which nodes are connected. */
    async peers(sinceMs: number): Promise<string[]> {
      if (peer === null) return []
      const sql = `select distinct peer_url from nodes where ${ELSEWHERE}`
      return rowsOf<{ peer_url: string }>(await db.execute({ sql, args: [peer, sinceMs] })).map(row => row.peer_url)
    },

    async signedOff(id: string, nowMs: number): Promise<void> {
      const sql = 'update nodes set signed_off = 1, last_seen_ms = ?, active_runs = 0 where id = ?'
      await db.execute({ sql, args: [nowMs, id] })
    },

    /** The nodes of its pool that have the same store as this one. */
    async sharing(id: string): Promise<string[]> {
      const found = await db.execute({
        sql: `select o.id from nodes n join nodes o on o.store_id = n.store_id and o.tenant_id = n.tenant_id and o.pool = n.pool
          where n.id = ?1 and o.id <> ?1 and o.enrolled_ms is not null`,
        args: [id],
      })
      return rowsOf<Pick<StoredNode, 'id'>>(found).map(row => row.id)
    },
  }
}

/** What waits for a node until it has it. */
function nodeFrames(db: Db) {
  return {
    frame: (nodeId: string, frame: Uint8Array): InStatement => ({
      sql: 'insert into node_frames (node_id, frame) values (?, ?)',
      args: [nodeId, frame],
    }),

    async frames(nodeId: string, afterId: number, most: number): Promise<{ id: number; frame: Uint8Array }[]> {
      const found = await db.execute({
        sql: 'select id, frame from node_frames where node_id = ? and id > ? order by id limit ?',
        args: [nodeId, afterId, most],
      })
      return rowsOf<RowOf<typeof nodeFramesTable>>(found).map(({ id, frame }) => ({ id, frame: new Uint8Array(frame) }))
    },

    /** The orders of one node become those of another one that has the same store; what was not accepted is offered to it. */
    handOver: (from: string, to: string): InStatement[] => [
      {
        sql: 'insert into node_frames (node_id, frame) select ?2, frame from node_frames where node_id = ?1 order by id',
        args: [from, to],
      },
      { sql: 'delete from node_frames where node_id = ?', args: [from] },
      {
        sql: `update runs set node_id = ?2 where id in (select run_id from remote_runs where node_id = ?1 and state = 'offered')`,
        args: [from, to],
      },
      { sql: `update remote_runs set node_id = ?2 where node_id = ?1 and state = 'offered'`, args: [from, to] },
    ],

    async framesArrived(nodeId: string, upToId: number): Promise<void> {
      await db.execute({ sql: 'delete from node_frames where node_id = ? and id <= ?', args: [nodeId, upToId] })
    },
  }
}
