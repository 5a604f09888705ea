import type { Session, SessionEvent, TurnReply } from '../../shared/wire/runtime/session.ts'
import { ClientError, type ClientOptions, serviceClient } from './service-client.ts'

export interface SessionClient {
  open(agentName: string): Promise<Session>
  get(id: string): Promise<Session>
  send(id: string, content: string): Promise<TurnReply>
  stop(id: string): Promise<Session>
  /** The events of a session, over however many connections; ends when the session does. */
  events(id: string, gone: AbortSignal): AsyncGenerator<SessionEvent>
}

const RECONNECT_MS = 1500

/** A running runtime as a program that talks to an agent needs it. */
export function sessionClient(options: ClientOptions): SessionClient {
  const { call, frames } = serviceClient(options)
  const of = (id: string) => `/v1/sessions/${encodeURIComponent(id)}`

  return {
    open: agentName => call('POST', '/v1/sessions', { agentName }),
    get: id => call('GET', of(id)),
    send: (id, content) => call('POST', `${of(id)}/messages`, { content }),
    stop: id => call('POST', `${of(id)}/stop`),

    async *events(id, gone) {
      let lastId: string | undefined
      for (;;) {
        try {
          for await (const { event, data, id: at } of frames(`${of(id)}/events`, { lastId, signal: gone })) {
            lastId = at ?? lastId
            yield { event, data } as SessionEvent
            if (event === 'session_stopped') return
          }
        } catch (error) {
          if (gone.aborted) return
          // What it refuses stays refused; where it does not answer for a moment, it is asked again.
          if (error instanceof ClientError && error.cause === undefined) throw error
        }
        if (gone.aborted) return
        await new Promise(resolve => setTimeout(resolve, RECONNECT_MS))
      }
    },
  }
}
