import type { InStatement } from '@libsql/client/web'
import { ApiError } from '../../../shared/http/api-error.ts'
import { utf8 } from '../../../shared/sign/bytes.ts'
import { type Db, type RowOf, rowsOf } from '../../../shared/sql/db.ts'
import { sealTo } from '../../../shared/tunnel/sealed-payload.ts'
import type { PoolCredential, PoolCredentialPut } from '../../../shared/wire/runtime/node.ts'
import type { ModelSettings, SecretBinding, SecretBindingChange } from '../../../shared/wire/runtime/provider.ts'
import { allows } from '../../../shared/wire/runtime/scopes.ts'
import type { Principal } from '../../http/http-env.ts'
import { notFound } from '../../http/own-tenant.ts'
import type { nodeCredentials, poolCredentials as poolCredentialsTable } from '../../schema/tables.ts'
import { bindingIn } from '../../secrets/store.ts'
import type { ReachableNodes } from '../peers/reachable-nodes.ts'
import type { NodeRow } from '../registry/node.ts'
import type { NodeStore } from '../registry/store.ts'
import { credentialAad, MODEL_SETTINGS, refOf } from '../sealed-payloads.ts'

export interface PoolCredentialsDeps {
  db: Db
  nodes: NodeStore
  reachableNodes: Pick<ReachableNodes, 'wake'>
  now: () => Date
  /** Takes a secret out of every log line from now on. */
  redact: (secret: string | undefined) => void
  /** The aliases, prices and windows that a tenant has set. */
  modelSettings: (tenantId: string) => Promise<ModelSettings | undefined>
}

type CredentialRow = RowOf<typeof poolCredentialsTable>

export type PoolCredentials = ReturnType<typeof poolCredentials>

/**
 * Secrets, provider keys and connector credentials of nodes (docs/spec/runtime.md §14). What stands here is sealed to the key of the pool,
 * which this side never has; each node gets it by a frame, keeps it under a key of its own, and says so.
 */
export function poolCredentials(deps: PoolCredentialsDeps) {
  const { db, nodes, now, redact, reachableNodes } = deps

  async function settingsFrame({ tenantId, pool }: Pick<NodeRow, 'tenantId' | 'pool'>, settings: ModelSettings) {
    const poolKey = await nodes.poolKey(tenantId, pool)
    if (poolKey === undefined) return undefined
    const sealed = await sealTo(poolKey, utf8(JSON.stringify(settings)), credentialAad(pool, MODEL_SETTINGS))
    return secretFrame(MODEL_SETTINGS, sealed, false)
  }

  return {
    ...credentialReads(db),

    list: (tenantId: string, pool: string) => listCredentials(deps, tenantId, pool),

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
      const binding = 'secret' in given ? await boundBy(deps, tenantId, pool, ref, given.secret) : {}
      const whole =
        'secret' in given ? { secret: { name: given.secret.name, value: given.secret.value, ...binding } } : given
      const sealed = await sealTo(poolKey, utf8(JSON.stringify(whole)), credentialAad(pool, ref))
      const there = await nodesOf(deps, tenantId, pool)
      await send(deps, there, await secretFrame(ref, sealed, false), [
        {
          sql: `insert into pool_credentials (tenant_id, pool, ref, box, updated_ms, binding) values (?1, ?2, ?3, ?4, ?5, ?6)
            on conflict do update set box = ?4, updated_ms = ?5, binding = ?6`,
          args: [tenantId, pool, ref, sealed, now().getTime(), JSON.stringify(binding)],
        },
        {
          sql: 'delete from node_credentials where ref = ? and node_id in (select value from json_each(?))',
          args: [ref, JSON.stringify(there)],
        },
      ])
      return (await listCredentials(deps, tenantId, pool)).find(one => one.ref === ref) ?? missing(ref)
    },

    async remove(tenantId: string, pool: string, ref: string): Promise<void> {
      const { rows } = await db.execute({
        sql: 'select 1 from pool_credentials where tenant_id = ? and pool = ? and ref = ?',
        args: [tenantId, pool, ref],
      })
      if (rows.length === 0) throw notFound('credential', ref)
      const there = await nodesOf(deps, tenantId, pool)
      await send(deps, there, await secretFrame(ref, new Uint8Array(), true), [
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

    /** What each node of a tenant is to be given in the transaction that sets these, in order with its runs. */
    async modelSettings(tenantId: string, settings: ModelSettings) {
      const there = await nodes.enrolled(tenantId)
      const frames = await Promise.all(
        there.map(async node => {
          const frame = await settingsFrame(node, settings)
          return frame ? [nodes.frame(node.id, frame)] : []
        }),
      )
      const wake = () => {
        for (const { id } of there) reachableNodes.wake(id)
      }
      return { frames: frames.flat(), wake }
    },

    /** A process of a node has come: its store may be new, or an older copy. */
    async arrived(node: Pick<NodeRow, 'id' | 'tenantId' | 'pool'>): Promise<void> {
      const settings = await deps.modelSettings(node.tenantId)
      const frame = settings && (await settingsFrame(node, settings))
      if (frame) await send(deps, [node.id], frame, [])
    },

    /** A node that has just enrolled is given what the others of its pool have. */
    async welcome(nodeId: string): Promise<void> {
      const node = await nodes.get(nodeId)
      if (node === undefined) return
      const found = await db.execute({
        sql: 'select ref, box from pool_credentials where tenant_id = ? and pool = ? order by ref',
        args: [node.tenantId, node.pool],
      })
      for (const { ref, box } of rowsOf<Pick<CredentialRow, 'ref' | 'box'>>(found)) {
        await send(deps, [nodeId], await secretFrame(ref, new Uint8Array(box), false), [])
      }
    },
  }
}

/** What warnings and runs need to know of the credentials of pools. */
function credentialReads(db: Db) {
  return {
    /** The bindings of secrets of one pool, or of each that has any of them. */
    async bindings(
      tenantId: string,
      pool: string | undefined,
      names: readonly string[],
    ): Promise<Map<string, SecretBinding>[]> {
      const found = await db.execute({
        sql: `select pool, substr(ref, 8) as name, binding from pool_credentials where tenant_id = ?1 and pool = coalesce(?2, pool)
and ref in (select 'secret/' || value from json_each(?3))`,
        args: [tenantId, pool ?? null, JSON.stringify(names)],
      })
      const byPool = new Map<string, Map<string, SecretBinding>>()
      for (const row of rowsOf<Pick<CredentialRow, 'pool' | 'binding'> & { name: string }>(found)) {
        const of = byPool.get(row.pool) ?? new Map<string, SecretBinding>()
        byPool.set(row.pool, of.set(row.name, bindingIn(row)))
      }
      return [...byPool.values()]
    },

    /** The connectors that some pool of a tenant has, for warnings about agents. */
    async connectors(tenantId: string): Promise<string[]> {
      const found = await db.execute({
        sql: `select distinct substr(ref, 11) as id from pool_credentials where tenant_id = ? and ref like 'connector/%'`,
        args: [tenantId],
      })
      return rowsOf<{ id: string }>(found).map(({ id }) => id)
    },
  }
}

async function secretFrame(ref: string, sealed: Uint8Array, remove: boolean): Promise<Uint8Array> {
  const { controlBytes } = await import('../../../shared/tunnel/control-bytes.ts')
  return controlBytes({ case: 'secretPut', value: { ref, sealed, remove } })
}

async function nodesOf(deps: PoolCredentialsDeps, tenantId: string, pool: string): Promise<string[]> {
  return (await deps.nodes.enrolled(tenantId)).filter(node => node.pool === pool).map(({ id }) => id)
}

async function send(
  deps: PoolCredentialsDeps,
  nodeIds: readonly string[],
  frame: Uint8Array,
  also: readonly InStatement[],
): Promise<void> {
  await deps.db.write([...also, ...nodeIds.map(nodeId => deps.nodes.frame(nodeId, frame))])
  for (const nodeId of nodeIds) deps.reachableNodes.wake(nodeId)
}

async function listCredentials(deps: PoolCredentialsDeps, tenantId: string, pool: string): Promise<PoolCredential[]> {
  const there = await nodesOf(deps, tenantId, pool)
  const stored = await deps.db.execute({
    sql: 'select ref, updated_ms, binding from pool_credentials where tenant_id = ? and pool = ? order by ref',
    args: [tenantId, pool],
  })
  const told = await deps.db.execute({
    sql: 'select node_id, ref, at_ms, error from node_credentials where node_id in (select value from json_each(?))',
    args: [JSON.stringify(there)],
  })
  const said = new Map(rowsOf<RowOf<typeof nodeCredentials>>(told).map(row => [`${row.node_id} ${row.ref}`, row]))
  return rowsOf<Pick<CredentialRow, 'ref' | 'updated_ms' | 'binding'>>(stored).map(row => ({
    ref: row.ref,
    updatedAt: new Date(row.updated_ms).toISOString(),
    ...bindingIn(row),
    nodes: there.map(nodeId => {
      const word = said.get(`${nodeId} ${row.ref}`)
      return {
        nodeId,
        ...(word && { at: new Date(word.at_ms).toISOString() }),
        ...(word && word.error !== null && { error: word.error }),
      }
    }),
  }))
}

/** The binding that a secret has from now on. It goes to the nodes whole, in the box with the value: a node that enrols later gets that alone. */
async function boundBy(
  deps: PoolCredentialsDeps,
  tenantId: string,
  pool: string,
  ref: string,
  change: SecretBindingChange,
): Promise<SecretBinding> {
  const found = await deps.db.execute({
    sql: 'select binding from pool_credentials where tenant_id = ? and pool = ? and ref = ?',
    args: [tenantId, pool, ref],
  })
  const [row] = rowsOf<Pick<CredentialRow, 'binding'>>(found)
  const before = row ? bindingIn(row) : {}
  const { hosts = before.hosts, tools = before.tools } = change
  return { ...(hosts && { hosts }), ...(tools && { tools }) }
}

function missing(ref: string): never {
  throw new Error(`credential ${ref} is gone right after it was stored`)
}
