import { sseReader } from '../../shared/http/sse-read.ts'
import { readJson } from '../../shared/json/read-json.ts'

/** The service refused, or is not there; the message is for the person at the terminal. */
export class ClientError extends Error {}

export interface ServiceClient {
  call<T>(method: string, path: string, body?: unknown): Promise<T>
  /** A list, page by page. */
  list<T>(path: string): AsyncGenerator<T>
  /** An answer that is not JSON, as it comes. */
  text(path: string, accept: string): Promise<string>
  /** The frames of an event stream, over one connection. */
  frames(path: string, options: StreamOptions): AsyncGenerator<Frame>
}

export interface Frame {
  event: string
  id: string | undefined
  data: unknown
}

interface StreamOptions {
  lastId?: string | undefined
  signal: AbortSignal
}

export interface ClientOptions {
  url: string
  key: string
  fetch?: typeof fetch
}

const MAX_FRAME_BYTES = 64 * 1024 * 1024

/** A running runtime, as its commands talk to it. */
export function serviceClient({ url, key, fetch: ask = fetch }: ClientOptions): ServiceClient {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }

  async function reach(path: string, init: RequestInit): Promise<Response> {
    let answer: Response
    try {
      answer = await ask(new URL(path, url), init)
    } catch (cause) {
      if (init.signal?.aborted) throw cause
      throw new ClientError(`${url} does not answer: is the runtime running there? Say where with --url.`, { cause })
    }
    if (!answer.ok) throw new ClientError(refusal(answer.status, await answer.text()))
    return answer
  }

  return {
    async call<T>(method: string, path: string, body?: unknown): Promise<T> {
      const answer = await reach(path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
      const text = await answer.text()
      return (text === '' ? undefined : readJson(text)) as T
    },

    async *list<T>(path: string) {
      let next: string | undefined = `${path}${path.includes('?') ? '&' : '?'}limit=200`
      while (next !== undefined) {
        const answer: Response = await reach(next, { headers })
        yield* (await answer.json()) as T[]
        next = /<([^>]+)>;\s*rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
      }
    },

    async text(path, accept) {
      return (await reach(path, { headers: { ...headers, accept } })).text()
    },

    async *frames(path, { lastId, signal }) {
      const resume: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId }
      const answer = await reach(path, { headers: { ...headers, ...resume }, signal })
      if (!answer.body) return
      const reader = sseReader({ maxFrameBytes: MAX_FRAME_BYTES })
      for await (const chunk of answer.body) {
        for (const { event, data, raw } of reader.push(chunk)) {
          if (event === undefined || data === undefined) continue
          const id = /^id: ?(\S+)$/m.exec(new TextDecoder().decode(raw))?.[1]
          yield { event, id, data: readJson(data) as unknown }
        }
      }
    },
  }
}

function refusal(status: number, text: string): string {
  try {
    const { error } = readJson(text) as { error?: unknown }
    if (typeof error === 'string') return error
  } catch {
    // Something else than the runtime answered.
  }
  return `${status} ${text.slice(0, 200)}`
}
