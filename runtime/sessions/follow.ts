import { type Live, stoppedEvent } from './live-sessions.ts'
import type { Numbered } from './session-log.ts'
import type { SessionState, SessionStore } from './store.ts'

export interface FollowDeps {
  store: Pick<SessionStore, 'states' | 'endsAfter' | 'lastCompleted'>
  live: Live
  now: () => Date
}

export interface FollowOptions {
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
  try {
    const first = (await store.states([sessionId])).get(sessionId)
    moved ??= first ?? 'deleted'
    if (first && lastId === undefined) {
      const told = replay === 0 ? [] : await store.lastCompleted(sessionId, replay)
      for (const { id, end } of told) yield { id, ...end }
      sent = first.lastEvent
    } else if (first && first.turnId === undefined) sent = Math.min(sent, first.lastEvent)

    for (let sinceTurn = 0; ; ) {
      hasChanged = false
      const state: SessionState | 'deleted' = moved
      const told = live.told(sessionId)
      const covered = told !== undefined && told.from <= sent
      if (!covered && state !== 'deleted' && (told || state.lastEvent > sent)) {
        for (const { id, end } of await store.endsAfter(sessionId, sent, now().getTime())) {
          if (gone.aborted) return
          // What was told here has its pieces, too.
          if (told && id > told.from) break
          yield { id, ...end }
          sent = id
        }
        if (told) sent = Math.max(sent, told.from)
      }
      const here = live.told(sessionId)
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
      if (covered && state.lastEvent > sent) {
        for (const { id, end } of await store.endsAfter(sessionId, sent, now().getTime())) {
          if (gone.aborted) return
          yield { id, ...end }
          sent = id
        }
      }
      if (state.status === 'stopped') {
        yield stoppedEvent(sessionId, state)
        return
      }
      if (gone.aborted) return
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
