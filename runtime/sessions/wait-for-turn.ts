import type { Live } from './live-sessions.ts'
import type { TurnEnd } from './session.ts'
import type { SessionStore } from './store.ts'

/** What a caller that waits for a turn gets. */
export type Awaited =
  | { is: 'ended'; end: TurnEnd }
  | { is: 'waiting' } // for a human
  | { is: 'processing' } // still, after all the time there was
  | { is: 'closed' } // the service stops; the turn goes on with the next one
  | { is: 'stopped' } // with its session, or deleted with it

export interface WaitDeps {
  store: Pick<SessionStore, 'turn'>
  live: Live
  timeoutMs: number
}

/** Waits for the end of a turn, wherever it is executed. Begin before the turn does, and nothing of it is missed. */
export function waitForTurn({ store, live, timeoutMs }: WaitDeps, sessionId: string, turnId: string) {
  const { promise, resolve } = Promise.withResolvers<Awaited>()
  /** Its end is durable before the session moves on, so one that is not found has not started. */
  const lookUp = (otherwise?: Awaited) =>
    store.turn(turnId).then(
      end => {
        if (end) resolve({ is: 'ended', end })
        else if (otherwise) resolve(otherwise)
      },
      () => undefined,
    )
  const leave = live.watch(sessionId, {
    told(event) {
      if (event.event !== 'message_completed' && event.event !== 'message_error') return
      const { id: _id, ...end } = event
      if (end.data.turnId === turnId) resolve({ is: 'ended', end })
    },
    moved(state) {
      if (state === undefined) resolve({ is: 'stopped' })
      else if (state.status === 'stopped') void lookUp({ is: 'stopped' })
      else if (state.turnId !== turnId) void lookUp()
      else if (state.turnStatus === 'waiting') resolve({ is: 'waiting' })
    },
    closed: () => resolve({ is: 'closed' }),
  })
  const timer = setTimeout(() => resolve({ is: 'processing' }), timeoutMs)
  const stop = () => {
    clearTimeout(timer)
    leave()
  }
  return { done: promise.finally(stop), stop: () => resolve({ is: 'processing' }) }
}
