import { Hono } from 'hono'
import { ApiError } from '../../shared/http/api-error.ts'
import { jsonBody, params } from '../../shared/http/validate.ts'
import { emptyBody, pageQuery } from '../../shared/wire/runtime/conventions.ts'
import {
  type Node,
  type NodeCreated,
  nodeCreate,
  nodeDeleteQuery,
  poolCredentialPut,
  poolCredentialQuery,
  poolParams,
} from '../../shared/wire/runtime/node.ts'
import { allows } from '../../shared/wire/runtime/scopes.ts'
import type { Principal, RuntimeHttpEnv } from '../http/http-env.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { readQuery } from '../http/read-query.ts'
import type { NodesDeps } from './deps.ts'
import { ENROL_MS, newToken } from './registry/enrolment.ts'
import { type NodeRow, toNode } from './registry/node.ts'

const MASK = '***'

/** Nodes: announcing, reading, draining, removing (docs/spec/runtime.md §14). */
export function nodesRoute(deps: NodesDeps) {
  const {
    db,
    store,
    reachableNodes,
    credentials,
    end,
    openOn,
    idempotent,
    now,
    newId,
    lostMs,
    endpoint,
    maxBodyBytes,
  } = deps
  const shown = (row: NodeRow): Node => toNode(row, now().getTime(), lostMs)
  const commandFor = (token: string) =>
    `PLATFORM_CONTROL_URL=${endpoint()?.endpoint ?? '<the tunnel address of the control plane>'} PLATFORM_ENROL_TOKEN=${token} npx node-agent run`

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

  return new Hono<RuntimeHttpEnv>()
    .post(
      '/v1/nodes',
      jsonBody(nodeCreate, maxBodyBytes),
      idempotent({
        oneTime: ['enrolToken', 'command'],
        again: async (c, id) => {
          const row = await find(c.get('principal'), id)
          return c.json({ ...shown(row), enrolToken: MASK, command: commandFor(MASK) }, 201)
        },
      }),
      async c => {
        const { name, pool, labels = {} } = c.req.valid('json')
        const { tenantId } = c.get('principal')
        const { token, hash } = newToken('wb_node_')
        const [id, createdMs] = [newId(), now().getTime()]
        const made = { ...{ id, tenantId, name, pool, labels, createdMs }, enrolHash: hash }
        const bind = c.get('idempotency')?.statement(id)
        await db.write([
          store.insert({ ...made, enrolExpiresMs: createdMs + ENROL_MS }),
          ...(bind === undefined ? [] : [bind]),
        ])
        await deps.wanted()
        const row = await find(c.get('principal'), id)
        return c.json({ ...shown(row), enrolToken: token, command: commandFor(token) } satisfies NodeCreated, 201)
      },
    )
    .get('/v1/nodes', async c => {
      const page = pageOf(c, readQuery(c, pageQuery))
      const rows = await store.list(c.get('principal').tenantId, page)
      return c.json(page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(shown))
    })
    .get('/v1/nodes/:id', async c => c.json(shown(await find(c.get('principal'), c.req.param('id')))))
    .post('/v1/nodes/:id/drain', jsonBody(emptyBody, maxBodyBytes), async c =>
      c.json(await drain(c.get('principal'), c.req.param('id'), true)),
    )
    .post('/v1/nodes/:id/undrain', jsonBody(emptyBody, maxBodyBytes), async c =>
      c.json(await drain(c.get('principal'), c.req.param('id'), false)),
    )
    .get('/v1/pools/:pool/credentials', params(poolParams), async c =>
      c.json(await credentials.list(c.get('principal').tenantId, c.req.valid('param').pool)),
    )
    .put('/v1/pools/:pool/credentials', params(poolParams), jsonBody(poolCredentialPut, maxBodyBytes), async c =>
      c.json(await credentials.put(c.get('principal'), c.req.valid('param').pool, c.req.valid('json'))),
    )
    .delete('/v1/pools/:pool/credentials', params(poolParams), async c => {
      const { ref } = readQuery(c, poolCredentialQuery)
      await credentials.remove(c.get('principal').tenantId, c.req.valid('param').pool, ref)
      return c.body(null, 204)
    })
    .delete('/v1/nodes/:id', async c => {
      const { force = false } = readQuery(c, nodeDeleteQuery)
      const { id } = await find(c.get('principal'), c.req.param('id'))
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
      return c.body(null, 204)
    })
}
