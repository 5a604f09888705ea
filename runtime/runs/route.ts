import { Hono } from 'hono'
import { jsonBody } from '../../shared/http/validate.ts'
import { emptyBody } from '../../shared/wire/runtime/conventions.ts'
import {
  type Run,
  runCancel,
  runCreate,
  runFork,
  runGetQuery,
  runListQuery,
  signalSend,
} from '../../shared/wire/runtime/run.ts'
import type { Principal, RuntimeHttpEnv } from '../http/http-env.ts'
import type { Idempotency } from '../http/idempotency.ts'
import type { Idempotent } from '../http/idempotent.ts'
import { notFound, own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { readQuery } from '../http/read-query.ts'
import { createdRun } from './created-run.ts'
import type { RunService } from './service.ts'
import type { RunStore } from './store.ts'

export interface RunsDeps {
  runs: RunStore
  service: RunService
  idempotent: Idempotent
  maxBodyBytes: number
}

/** Runs: start, read, end, fork (docs/spec/runtime.md §4). */
export function runsRoute({ runs, service, idempotent, maxBodyBytes }: RunsDeps) {
  async function find(principal: Principal, id: string): Promise<Run> {
    return own(principal, await runs.get(id), 'run', id)
  }

  /** Without asking a node for what it holds: a run is ended, signalled and deleted while its node is away. */
  async function findNear(principal: Principal, id: string): Promise<Run> {
    return own(principal, await runs.summary(id), 'run', id)
  }

  const repeated = idempotent({
    async again(c, runId) {
      const run = await runs.get(runId)
      if (!run) throw notFound('run', runId)
      return c.json(createdRun(run), 201)
    },
    bodyKey: body => (body as { idempotencyKey?: string } | undefined)?.idempotencyKey,
  })
  const binding = (idempotency: Idempotency | undefined) => (id: string) =>
    idempotency ? [idempotency.statement(id)] : []

  return new Hono<RuntimeHttpEnv>()
    .post('/v1/runs', jsonBody(runCreate, maxBodyBytes), repeated, async c => {
      const also = binding(c.get('idempotency'))
      return c.json(createdRun(await service.start(c.get('principal').tenantId, c.req.valid('json'), also)), 201)
    })
    .get('/v1/runs', async c => {
      const query = readQuery(c, runListQuery)
      const page = pageOf(c, query)
      const found = await runs.list(c.get('principal').tenantId, query, page)
      return c.json(page.cut(found, ({ createdAt, id }) => ({ at: Date.parse(createdAt), id })))
    })
    .get('/v1/runs/:id', async c => {
      const { fields } = readQuery(c, runGetQuery)
      const id = c.req.param('id')
      if (fields !== 'summary') return c.json(await find(c.get('principal'), id))
      return c.json(own(c.get('principal'), await runs.summary(id), 'run', id))
    })
    .delete('/v1/runs/:id', async c => {
      await service.remove(await findNear(c.get('principal'), c.req.param('id')))
      return c.body(null, 204)
    })
    .post('/v1/runs/:id/cancel', jsonBody(runCancel, maxBodyBytes), async c => {
      const run = await findNear(c.get('principal'), c.req.param('id'))
      return c.json(await service.cancel(run, c.req.valid('json').reason))
    })
    .post('/v1/runs/:id/fork', jsonBody(runFork, maxBodyBytes), repeated, async c => {
      const source = await find(c.get('principal'), c.req.param('id'))
      const { fromStepId, input } = c.req.valid('json')
      return c.json(createdRun(await service.fork(source, fromStepId, input, binding(c.get('idempotency')))), 201)
    })
    .post('/v1/runs/:id/retry', jsonBody(emptyBody, maxBodyBytes), repeated, async c => {
      const source = await find(c.get('principal'), c.req.param('id'))
      return c.json(createdRun(await service.retry(source, binding(c.get('idempotency')))), 201)
    })
    .post('/v1/runs/:id/signals/:name', jsonBody(signalSend, maxBodyBytes), async c => {
      const run = await findNear(c.get('principal'), c.req.param('id'))
      await service.signal(run, c.req.param('name'), c.req.valid('json').value)
      return c.body(null, 204)
    })
}
