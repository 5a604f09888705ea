import type { InStatement } from '@libsql/client/web'
import { ApiError } from '../../../shared/http/api-error.ts'
import { utf8 } from '../../../shared/sign/bytes.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { sealTo } from '../../../shared/tunnel/sealed-payload.ts'
import type { PoolCredential, PoolCredentialPut } from '../../../shared/wire/runtime/node.ts'
import { allows } from '../../../shared/wire/runtime/scopes.ts'
import type { Principal } from '../../http/http-env.ts'
import { notFound } from '../../http/own-tenant.ts'
import type { ReachableNodes } from '../peers/reachable-nodes.ts'
import type { NodeStore } from '../registry/store.ts'
import { credentialAad, refOf } from '../sealed-payloads.ts'

export interface PoolCredentialsDeps {
  db: Db
  nodes: NodeStore
  reachableNodes: Pick<ReachableNodes, 'wake'>
  now: () => Date
  /** Takes a secret out of every log line from now on. */
  redact: (secret: string | undefined) => void
}

export type PoolCredentials = ReturnType<typeof poolCredentials>

/**
 * Secrets, provider keys and connector credentials of nodes (runtime contract §14). What stands here is sealed to the key of the pool,
 * which this side never has; each node gets it by a frame, keeps it under a key of its own, and says so.
 */
export function poolCredentials({ db, nodes, reachableNodes, now, redact }: PoolCredentialsDeps) {
  async function frameOf(ref: string, sealed: Uint8Array, remove: boolean): Promise<Uint8Array> {
    const { controlBytes } = await import('../../../shared/tunnel/control-bytes.ts')
    return controlBytes({ case: 'secretPut', value: { ref, sealed, remove } })
  }

  async function nodesOf(tenantId: string, pool: string): Promise<string[]> {
    return (await nodes.enrolled(tenantId)).filter(node => node.pool === pool).map(({ id }) => id)
  }

  async function send(nodeIds: readonly string[], frame: Uint8Array, also: readonly InStatement[]): Promise<void> {
    await db.write([...also, ...nodeIds.map(nodeId => nodes.frame(nodeId, frame))])
    for (const nodeId of nodeIds) reachableNodes.wake(nodeId)
  }

  async function list(tenantId: string, pool: string): Promise<PoolCredential[]> {
    const there = await nodesOf(tenantId, pool)
    const { rows } = await db.execute({
      sql: 'select ref, updated_ms from pool_credentials where tenant_id = ? and pool = ? order by ref',
      args: [tenantId, pool],
    })
    const told = await db.execute({
      sql: 'select node_id, ref, at_ms, error from node_credentials where node_id in (select value from json_each(?))',
      args: [JSON.stringify(there)],
    })
    const said = new Map(told.rows.map(row => [`${row.node_id} ${row.ref}`, row]))
    return rows.map(({ ref, updated_ms: updatedMs }) => ({
      ...{ ref: String(ref), updatedAt: new Date(Number(updatedMs)).toISOString() },
      nodes: there.map(nodeId => {
        const row = said.get(`${nodeId} ${ref}`)
        return {
          nodeId,
          ...(row && { at: new Date(Number(row.at_ms)).toISOString() }),
          ...(row && row.error !== null && { error: String(row.error) }),
        }
      }),
    }))
  }

  return {
    list,

    async put({ tenantId, scopes }: Principal, pool: string, given: PoolCredentialPut): Promise<PoolCredential> {
      if ('connector' in given && !allows(scopes, ['connectors:write'])) {
        throw new ApiError('forbidden_scope', 'a connector needs the scope connectors:write as well')
      }
      const poolKey = await nodes.poolKey(tenantId, pool)
      if (poolKey === undefined) {
        throw new ApiError(
          'not_found',
          `pool ${pool} has no enrolled node: the key to seal to comes with its first one`,
        )
      }
      if ('secret' in given) redact(given.secret.value)
      if ('provider' in given) redact(given.provider.apiKey)
      const ref = refOf(given)
      const sealed = await sealTo(poolKey, utf8(JSON.stringify(given)), credentialAad(pool, ref))
      const there = await nodesOf(tenantId, pool)
      await send(there, await frameOf(ref, sealed, false), [
        {
          sql: `insert into pool_credentials (tenant_id, pool, ref, box, updated_ms) values (?1, ?2, ?3, ?4, ?5)
            on conflict do update set box = ?4, updated_ms = ?5`,
          args: [tenantId, pool, ref, sealed, now().getTime()],
        },
        {
          sql: 'delete from node_credentials where ref = ? and node_id in (select value from json_each(?))',
          args: [ref, JSON.stringify(there)],
        },
      ])
      return (await list(tenantId, pool)).find(one => one.ref === ref) ?? missing(ref)
    },

    async remove(tenantId: string, pool: string, ref: string): Promise<void> {
      const { rows } = await db.execute({
        sql: 'select 1 from pool_credentials where tenant_id = ? and pool = ? and ref = ?',
        args: [tenantId, pool, ref],
      })
      if (rows.length === 0) throw notFound('credential', ref)
      const there = await nodesOf(tenantId, pool)
      await send(there, await frameOf(ref, new Uint8Array(), true), [
        {
          sql: 'delete from pool_credentials where tenant_id = ? and pool = ? and ref = ?',
          args: [tenantId, pool, ref],
        },
        {
          sql: 'delete from node_credentials where ref = ? and node_id in (select value from json_each(?))',
          args: [ref, JSON.stringify(there)],
        },
      ])
    },

    /** A node that has just enrolled is given what the others of its pool have. */
    async welcome(nodeId: string): Promise<void> {
      const node = await nodes.get(nodeId)
      if (node === undefined) return
      const { rows } = await db.execute({
        sql: 'select ref, box from pool_credentials where tenant_id = ? and pool = ? order by ref',
        args: [node.tenantId, node.pool],
      })
      for (const { ref, box } of rows) {
        await send([nodeId], await frameOf(String(ref), new Uint8Array(box as ArrayBuffer), false), [])
      }
    },

    /** The connectors that some pool of a tenant has, for warnings about agents. */
    async connectors(tenantId: string): Promise<string[]> {
      const { rows } = await db.execute({
        sql: `select distinct substr(ref, 11) from pool_credentials where tenant_id = ? and ref like 'connector/%'`,
        args: [tenantId],
      })
      return rows.map(row => String(row[0]))
    },
  }
}

function missing(ref: string): never {
  throw new Error(`credential ${ref} is gone right after it was stored`)
}
