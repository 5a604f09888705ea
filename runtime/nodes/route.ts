import { ApiError } from '../../shared/http/api-error.ts'
import type { Db } from '../../shared/sql/db.ts'
import { nodeEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/nodes.ts'
import type { Node } from '../../shared/wire/runtime/node.ts'
import { allows } from '../../shared/wire/runtime/scopes.ts'
import type { Principal } from '../http/http-env.ts'
import { keyedOperation, type Operation, operation } from '../http/operation.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import type { PoolCredentials } from './credentials/pool-credentials.ts'
import type { WellKnownDeps } from './gateway/well-known-route.ts'
import type { ReachableNodes } from './peers/reachable-nodes.ts'
import { ENROL_MS, joinCommand, newToken } from './registry/enrolment.ts'
import { type NodeRow, toNode } from './registry/node.ts'
import type { NodeStore } from './registry/store.ts'
import type { RemoteRunCut } from './runs/end-remote-run.ts'
import type { RemoteRun } from './runs/remote-run.ts'

export interface NodesDeps extends WellKnownDeps {
  db: Db
  store: NodeStore
  reachableNodes: Pick<ReachableNodes, 'first'>
  credentials: Pick<PoolCredentials, 'list' | 'put' | 'remove'>
  end: (id: string, end: RemoteRunCut) => Promise<boolean>
  openOn: (nodeId: string) => Promise<RemoteRun[]>
  now: () => Date
  newId: () => string
  lostMs: number
  /** A node is announced: from now on this process listens for it, at an address that the command names. */
  wanted: () => Promise<void>
}

const MASK = '***'

/** Nodes: announcing, reading, draining, removing (docs/spec/runtime.md §14). */
export function nodeOperations(deps: NodesDeps): Operation[] {
  const { db, store, reachableNodes, credentials, end, openOn, now, newId, lostMs, endpoint } = deps
  const shown = (row: NodeRow): Node => toNode(row, now().getTime(), lostMs)
  const commandFor = (token: string) => joinCommand(endpoint()?.endpoint, token)

  /** A platform administrator manages the nodes of every tenant. */
  async function find(principal: Principal, id: string): Promise<NodeRow> {
    const row = await store.get(id)
    if (row !== undefined && allows(principal.scopes, ['platform:admin'])) return row
    return own(principal, row, 'node', id)
  }

  async function drain(principal: Principal, id: string, on: boolean): Promise<Node> {
    await find(principal, id)
    const changed = await store.setDraining(id, on)
    if (!changed) throw notFound('node', id)
    const link = await reachableNodes.first([id])
    link?.drain(on)
    return shown(changed)
  }

  return [
    keyedOperation(
      endpoints.create,
      async ({ principal, body: { name, pool, labels = {} }, idempotency }) => {
        const { token, hash } = newToken('wb_node_')
        const [id, createdMs] = [newId(), now().getTime()]
        const { tenantId } = principal
        const made = {
          id,
          tenantId,
          name,
          pool,
          labels,
          createdMs,
          enrolHash: hash,
          enrolExpiresMs: createdMs + ENROL_MS,
        }
        await db.write([store.insert(made), ...idempotency.bind(id)])
        await deps.wanted()
        const row = await find(principal, id)
        return { ...shown(row), enrolToken: token, command: commandFor(token) }
      },
      {
        oneTime: ['enrolToken', 'command'],
        again: async ({ principal }, id) => ({
          ...shown(await find(principal, id)),
          enrolToken: MASK,
          command: commandFor(MASK),
        }),
      },
    ),
    operation(endpoints.list, async call => {
      const page = pageOf(call)
      const rows = await store.list(call.principal.tenantId, page)
      return page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(shown)
    }),
    operation(endpoints.get, async ({ principal, params }) => shown(await find(principal, params.id))),
    operation(endpoints.drain, ({ principal, params }) => drain(principal, params.id, true)),
    operation(endpoints.undrain, ({ principal, params }) => drain(principal, params.id, false)),
    operation(endpoints.credentials, ({ principal, params }) => credentials.list(principal.tenantId, params.pool)),
    operation(endpoints.saveCredential, ({ principal, params, body }) => credentials.put(principal, params.pool, body)),
    operation(endpoints.removeCredential, async ({ principal, params, query }) => {
      await credentials.remove(principal.tenantId, params.pool, query.ref)
    }),
    operation(endpoints.remove, async ({ principal, params, query: { force = false } }) => {
      const { id } = await find(principal, params.id)
      const { data } = await store.holds(id)
      if (data > 0 && !force) {
        throw new ApiError('node_busy', `node ${id} holds ${data} runs: delete those, or remove it with force=true`)
      }
      for (const run of await openOn(id)) {
        await end(run.id, { status: 'failed', code: 'node_lost', message: 'its node was removed', final: true })
      }
      const link = await reachableNodes.first([id])
      await store.remove(id)
      link?.end()
    }),
  ]
}
