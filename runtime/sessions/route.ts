import { Hono } from 'hono'
import { type SseEvent, sseResponse } from '../../shared/http/sse-write.ts'
import { jsonBody } from '../../shared/http/validate.ts'
import { emptyBody } from '../../shared/wire/runtime/conventions.ts'
import {
  messageCreate,
  type Session,
  sessionCreate,
  sessionEventsQuery,
  sessionListQuery,
} from '../../shared/wire/runtime/session.ts'
import type { Principal, RuntimeHttpEnv } from '../http/http-env.ts'
import type { Idempotency } from '../http/idempotency.ts'
import { own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { readQuery } from '../http/read-query.ts'
import type { SessionsDeps } from './deps.ts'
import { follow } from './follow.ts'
import type { SessionRow } from './session.ts'
import type { Numbered } from './session-log.ts'

const RETRY_MS = 1500

/** Sessions: open, talk, listen, stop (docs/spec/runtime.md §7 and §6). */
export function sessionsRoute({ service, idempotent, maxBodyBytes, heartbeatMs, isElsewhere, ...deps }: SessionsDeps) {
  const { store } = deps

  async function find(principal: Pick<Principal, 'tenantId'>, id: string): Promise<SessionRow> {
    return own(principal, await store.get(id), 'session', id)
  }

  const binding = (idempotency: Idempotency | undefined) => (id: string) =>
    idempotency ? [idempotency.statement(id)] : []

  const openedAgain = idempotent({
    async again(c, id) {
      const { wire } = await find(c.get('principal'), id)
      return c.json(asOpened(wire), 201)
    },
  })
  const sentAgain = idempotent({
    again: async (c, turnId) => c.json(await service.replyAgain(c.req.param('id') ?? '', turnId)),
    byReference: c => isElsewhere(c.req.param('id') ?? ''),
  })

  return new Hono<RuntimeHttpEnv>()
    .post('/v1/sessions', jsonBody(sessionCreate, maxBodyBytes), openedAgain, async c => {
      const also = binding(c.get('idempotency'))
      return c.json(await service.open(c.get('principal').tenantId, c.req.valid('json'), also), 201)
    })
    .get('/v1/sessions', async c => {
      const query = readQuery(c, sessionListQuery)
      const page = pageOf(c, query)
      const rows = await store.list(c.get('principal').tenantId, query, page)
      return c.json(page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(({ wire }) => wire))
    })
    .get('/v1/sessions/:id', async c => {
      const { id, wire } = await find(c.get('principal'), c.req.param('id'))
      return c.json({ ...service.withVm(wire), messages: await store.messages(id) } satisfies Session)
    })
    .post('/v1/sessions/:id/messages', jsonBody(messageCreate, maxBodyBytes), sentAgain, async c => {
      const session = await find(c.get('principal'), c.req.param('id'))
      return c.json(await service.send(session, c.req.valid('json'), binding(c.get('idempotency'))))
    })
    .post('/v1/sessions/:id/stop', jsonBody(emptyBody, maxBodyBytes), async c =>
      c.json(await service.stop(await find(c.get('principal'), c.req.param('id')))),
    )
    .delete('/v1/sessions/:id', async c => {
      await service.remove(await find(c.get('principal'), c.req.param('id')))
      return c.body(null, 204)
    })
    .get('/v1/sessions/:id/events', async c => {
      const { id, wire } = await find(c.get('principal'), c.req.param('id'))
      const { replay } = readQuery(c, sessionEventsQuery)
      const last = /^\d{1,15}$/.exec(c.req.header('last-event-id') ?? '')?.[0]
      const lastId = last === undefined ? undefined : Number(last)
      if (lastId !== undefined && wire.status === 'stopped') {
        // A browser's EventSource comes back after every end of a stream, and stays away only after this answer.
        const state = (await store.states([id])).get(id)
        if (state && lastId >= state.lastEvent) return c.body(null, 204)
      }
      return sseResponse(gone => deps.clients.counted('session', stream(follow(deps, id, { lastId, replay, gone }))), {
        ...{ retryMs: RETRY_MS, heartbeatMs },
      })
    })
}

/** A session as it was the moment it was opened. */
function asOpened(wire: Session): Session {
  const { stoppedAt: _stoppedAt, ...opened } = wire
  const nothing = { tokensIn: 0, tokensOut: 0, costUsd: 0, turnCount: 0 }
  return { ...opened, ...nothing, status: 'active', updatedAt: wire.createdAt }
}

async function* stream(events: AsyncIterable<Numbered>): AsyncGenerator<SseEvent> {
  for await (const { id, event, data } of events) yield { id, event, data }
}
