import { type SseEvent, sseResponse } from '../../shared/http/sse-write.ts'
import { sessionEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/sessions.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import type { Principal } from '../http/http-env.ts'
import { lastEventId } from '../http/last-event-id.ts'
import { keyedOperation, type Operation, operation } from '../http/operation.ts'
import { own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import type { StreamClients } from '../http/stream-clients.ts'
import { type FollowDeps, follow } from './follow.ts'
import type { SessionService } from './service.ts'
import type { SessionRow } from './session.ts'
import type { Numbered } from './session-log.ts'
import type { SessionStore } from './store.ts'

export interface SessionsDeps extends FollowDeps {
  store: SessionStore
  service: SessionService
  heartbeatMs: number
  clients: StreamClients
  /** Whether a node holds that session: then nothing that is said in it may be kept here. */
  isElsewhere: (sessionId: string) => Promise<boolean>
}

const RETRY_MS = 1500

/** Sessions: open, talk, listen, stop (docs/spec/runtime.md §7 and §6). */
export function sessionOperations({ service, heartbeatMs, isElsewhere, ...deps }: SessionsDeps): Operation[] {
  const { store } = deps

  const find = async (principal: Principal, { id }: { id: string }): Promise<SessionRow> =>
    own(principal, await store.get(id), 'session', id)

  return [
    keyedOperation(
      endpoints.create,
      ({ principal, body, idempotency }) => service.open(principal.tenantId, body, idempotency.bind),
      { again: async ({ principal }, id) => asOpened((await find(principal, { id })).wire) },
    ),
    operation(endpoints.list, async call => {
      const page = pageOf(call)
      const rows = await store.list(call.principal.tenantId, call.query, page)
      return page.cut(rows, ({ createdMs, id }) => ({ at: createdMs, id })).map(({ wire }) => wire)
    }),
    operation(endpoints.get, async ({ principal, params }) => {
      const { id, wire } = await find(principal, params)
      return { ...service.withVm(wire), messages: await store.messages(id) }
    }),
    keyedOperation(
      endpoints.message,
      async ({ principal, params, body, idempotency }) =>
        service.send(await find(principal, params), body, idempotency.bind),
      {
        again: ({ params }, turnId) => service.replyAgain(params.id, turnId),
        byReference: ({ params }) => isElsewhere(params.id),
      },
    ),
    operation(endpoints.stop, async ({ principal, params }) => service.stop(await find(principal, params))),
    operation(endpoints.remove, async ({ principal, params }) => {
      await service.remove(await find(principal, params))
    }),
    operation(endpoints.events, async ({ principal, params, query: { replay }, context }) => {
      const { id, wire } = await find(principal, params)
      const lastId = lastEventId(context)
      if (lastId !== undefined && wire.status === 'stopped') {
        // A browser's EventSource comes back after every end of a stream, and stays away only after this answer.
        const state = (await store.states([id])).get(id)
        if (state && lastId >= state.lastEvent) return context.body(null, 204)
      }
      const events = (gone: AbortSignal) => stream(follow(deps, id, { lastId, replay, gone }))
      return sseResponse(gone => deps.clients.counted('session', events(gone)), { retryMs: RETRY_MS, heartbeatMs })
    }),
  ]
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
