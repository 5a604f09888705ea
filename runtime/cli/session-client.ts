import { sseReader } from '../../shared/http/sse-read.ts'
import type { Session, SessionEvent, TurnReply } from '../../shared/wire/runtime/session.ts'

/** The service refused, or is not there; the message is for the person at the terminal. */
export class ClientError extends Error {}

export interface SessionClient {
  open(agentName: string): Promise<Session>
  get(id: string): Promise<Session>
  send(id: string, content: string): Promise<TurnReply>
  stop(id: string): Promise<Session>
  /** The events of a session, over however many connections; ends when the session does. */
  events(id: string, gone: AbortSignal): AsyncGenerator<SessionEvent>
}

export interface ClientOptions {
  url: string
  key: string
  fetch?: typeof fetch
}

const RECONNECT_MS = 1500
const MAX_FRAME_BYTES = 64 * 1024 * 1024

/** A running runtime as somebody who talks to an agent needs it. */
export function sessionClient({ url, key, fetch: ask = fetch }: ClientOptions): SessionClient {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }

  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
    const answer = await reach(() => ask(new URL(path, url), init))
    const text = await answer.text()
    if (!answer.ok) throw new ClientError(refusal(answer.status, text))
    return JSON.parse(text) as T
  }

  async function reach(go: () => Promise<Response>): Promise<Response> {
    try {
      return await go()
    } catch (cause) {
      throw new ClientError(`${url} does not answer: is the runtime running there? Say where with --url.`, { cause })
    }
  }

  return {
    open: agentName => call('POST', '/v1/sessions', { agentName }),
    get: id => call('GET', `/v1/sessions/${encodeURIComponent(id)}`),
    send: (id, content) => call('POST', `/v1/sessions/${encodeURIComponent(id)}/messages`, { content }),
    stop: id => call('POST', `/v1/sessions/${encodeURIComponent(id)}/stop`),

    async *events(id, gone) {
      let lastId: string | undefined
      for (;;) {
        const resume: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId }
        try {
          const path = new URL(`/v1/sessions/${encodeURIComponent(id)}/events`, url)
          const answer = await ask(path, { headers: { ...headers, ...resume }, signal: gone })
          if (!answer.ok) throw new ClientError(refusal(answer.status, await answer.text()))
          for await (const { event, id: at } of frames(answer)) {
            lastId = at ?? lastId
            yield event
            if (event.event === 'session_stopped') return
          }
        } catch (error) {
          if (gone.aborted) return
          if (error instanceof ClientError) throw error
        }
        if (gone.aborted) return
        await new Promise(resolve => setTimeout(resolve, RECONNECT_MS))
      }
    },
  }
}

async function* frames(answer: Response): AsyncGenerator<{ event: SessionEvent; id: string | undefined }> {
  if (!answer.body) return
  const reader = sseReader({ maxFrameBytes: MAX_FRAME_BYTES })
  for await (const chunk of answer.body) {
    for (const { event, data, raw } of reader.push(chunk)) {
      if (event === undefined || data === undefined) continue
      const id = /^id: ?(\S+)$/m.exec(new TextDecoder().decode(raw))?.[1]
      yield { event: { event, data: JSON.parse(data) } as SessionEvent, id }
    }
  }
}

function refusal(status: number, text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: unknown }
    if (typeof error === 'string') return error
  } catch {
    // Something else than the runtime answered.
  }
  return `${status} ${text.slice(0, 200)}`
}

/** A model's text as a terminal may show it: it moves no cursor and sets no colour. */
export function printable(text: string): string {
  return [...text]
    .filter(character => {
      const code = character.codePointAt(0) ?? 0
      return character === '\n' || character === '\t' || (code >= 0x20 && (code < 0x7f || code > 0x9f))
    })
    .join('')
}
