import { type SseEvent, sseResponse } from '../../shared/http/sse-write.ts'
import { sessionEndpoints as endpoints } from '../../shared/wire/runtime/endpoints/sessions.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import { refuseWithoutScope } from '../auth/gate.ts'
import type { Principal } from '../http/http-env.ts'
import { keyedOperation, type Operation, operation } from '../http/operation.ts'
import { own } from '../http/own-tenant.ts'
import { pageOf } from '../http/page.ts'
import { lastEventId, type StreamClients } from '../http/stream-clients.ts'
import { type Live, stoppedEvent } from './live-sessions.ts'
import type { SessionService } from './service.ts'
import type { SessionRow } from './session.ts'
import type { Numbered } from './session-log.ts'
import type { SessionState, SessionStore, TurnEnds } from './store.ts'

export interface SessionsDeps extends FollowDeps {
  store: SessionStore
  service: SessionService
  heartbeatMs: number
  clients: StreamClients
}

const RETRY_MS = 1500

/** Sessions: open, talk, listen, stop (docs/spec/runtime.md §7 and §6). */
export function sessionOperations({ service, heartbeatMs, ...deps }: SessionsDeps): Operation[] {
  const { store } = deps

  const find = async (principal: Principal, { id }: { id: string }): Promise<SessionRow> =>
    own(principal, await store.get(id), 'session', id)

  return [
    keyedOperation(
      endpoints.create,
      ({ principal, body, idempotency }) => service.open(principal.tenantId, body, idempotency.bind),
      {
        again: async ({ principal }, id) => service.withVm(asOpened((await find(principal, { id })).wire)),
        byReference: true,
      },
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
        byReference: true,
      },
    ),
    operation(endpoints.stop, async ({ principal, params }) => service.stop(await find(principal, params))),
    operation(endpoints.remove, async ({ principal, params, query: { runs = false } }) => {
      if (runs) refuseWithoutScope(principal, ['runs:write'])
      const session = await find(principal, params)
      await (runs ? service.removeWithRuns(session) : service.remove(session))
    }),
    operation(endpoints.events, async ({ principal, params, query: { replay }, context }) => {
      deps.clients.refuseBeyond(principal.tenantId)
      const { id, wire } = await find(principal, params)
      const lastId = lastEventId(context)
      if (lastId !== undefined && wire.status === 'stopped') {
        // A browser's EventSource comes back after every end of a stream, and stays away only after this answer.
        const state = (await store.states([id])).get(id)
        if (state && lastId >= state.lastEvent) return context.body(null, 204)
      }
      const events = (gone: AbortSignal) => stream(follow(deps, id, { lastId, replay, gone }))
      const admitted = context.get('admitted')
      return sseResponse(gone => deps.clients.counted('session', principal.tenantId, events(gone)), {
        retryMs: RETRY_MS,
        heartbeatMs,
        admitted,
      })
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

interface FollowDeps {
  store: Pick<SessionStore, 'states' | 'endsAfter' | 'lastCompleted'>
  live: Live
  now: () => Date
}

interface FollowOptions {
  /** What the reader had last; absent: it is new. */
  lastId?: number | undefined
  /** So many finished turns are replayed first to a new reader. */
  replay: number
  gone: AbortSignal
}

/** After so many events in a row the sockets get a turn, so that a reader who keeps up is seen to. */
const AT_ONCE = 128

/**
 * A session's stream (docs/spec/runtime.md §6): what the reader missed, then what is said, until the session is stopped. Ids only
 * grow, and whatever is not beyond the last one that was sent is not sent.
 */
export async function* follow(
  { store, live, now }: FollowDeps,
  sessionId: string,
  { lastId, replay, gone }: FollowOptions,
): AsyncGenerator<Numbered> {
  let wake = () => {}
  let hasChanged = false
  let over = false
  let moved: SessionState | 'deleted' | undefined
  const stir = () => {
    hasChanged = true
    wake()
  }
  // Before the first read, so that nothing falls between the read and the watching.
  const leave = live.watch(sessionId, {
    pieces: true,
    told: stir,
    moved(state) {
      moved = state ?? 'deleted'
      if (moved === 'deleted' || moved.status === 'stopped' || moved.lastEvent > sent) stir()
    },
    closed() {
      over = true
      stir()
    },
  })
  gone.addEventListener('abort', stir, { once: true })
  let sent = lastId ?? 0
  /** The ends of turns that the store has, up to the one with that id. */
  async function* stored(last = Number.POSITIVE_INFINITY): AsyncGenerator<Numbered> {
    for await (const { id, end } of each(after => store.endsAfter(sessionId, after, now().getTime()), sent)) {
      if (gone.aborted || id > last) return
      yield { id, ...end }
      sent = id
    }
  }
  try {
    const first = (await store.states([sessionId])).get(sessionId)
    moved ??= first ?? 'deleted'
    if (first && lastId === undefined) {
      if (replay > 0) {
        const last = each(after => store.lastCompleted(sessionId, replay, after), 0)
        for await (const { id, end } of last) yield { id, ...end }
      }
      sent = first.lastEvent
    } else if (first && first.turnId === undefined) sent = Math.min(sent, first.lastEvent)

    for (let sinceTurn = 0; ; ) {
      hasChanged = false
      const state: SessionState | 'deleted' = moved
      const told = live.streamed(sessionId)
      const covered = told !== undefined && told.from <= sent
      if (!covered && state !== 'deleted' && (told || state.lastEvent > sent)) {
        // What was told here has its pieces, too.
        yield* stored(told?.from)
        if (told) sent = Math.max(sent, told.from)
      }
      const here = live.streamed(sessionId)
      if (here) {
        for (const event of here.events.filter(({ id }) => id > sent)) {
          if (gone.aborted) return
          yield event
          sent = event.id
          if (++sinceTurn % AT_ONCE === 0) await new Promise(resolve => setTimeout(resolve, 0))
        }
      }
      if (gone.aborted || over) return
      if (state === 'deleted') {
        yield stoppedEvent(sessionId, { lastEvent: sent + 1, stoppedMs: now().getTime(), stopReason: 'deleted' })
        return
      }
      // What another process has ended meanwhile.
      if (covered && state.lastEvent > sent) yield* stored()
      if (gone.aborted) return
      if (state.status === 'stopped') {
        yield stoppedEvent(sessionId, state)
        return
      }
      if (hasChanged) continue
      await new Promise<void>(resolve => {
        wake = resolve
        if (hasChanged || gone.aborted) resolve()
      })
      wake = () => {}
    }
  } finally {
    gone.removeEventListener('abort', stir)
    leave()
  }
}

/** The ends of turns after an event, page by page. */
async function* each(
  page: (after: number) => Promise<TurnEnds>,
  after: number,
): AsyncGenerator<TurnEnds['ends'][number]> {
  for (let from = after; ; ) {
    const { ends, isLast } = await page(from)
    yield* ends
    const last = ends.at(-1)
    if (isLast || last === undefined) return
    from = last.id
  }
}
