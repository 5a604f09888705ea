import { abortable } from '../http/abortable.ts'
import { ClientError, refusalOf } from './client-error.ts'
import type { CallOptions } from './client-types.ts'

export interface ClientOptions {
  /** Where the service is, such as `http://127.0.0.1:8080`; a path of its own is kept. */
  url: string
  /** An API key of the runtime, or a key of the router. */
  key?: string | undefined
  fetch?: typeof fetch | undefined
  /** Headers of each call. */
  headers?: Readonly<Record<string, string>> | undefined
  /** How often a call that is safe to repeat is tried again; default 2. */
  retries?: number | undefined
}

export interface Arguments {
  params?: Readonly<Record<string, unknown>>
  query?: Readonly<Record<string, unknown>>
  body?: unknown
}

export interface Outgoing {
  method: string
  /** With `{name}` for each parameter. */
  path: string
  /** Whether the operation takes an `Idempotency-Key`. */
  keyed: boolean
}

/** Sends a call and reads its answer: one that breaks off while it is read was no answer. */
export type SendCall = <T>(
  call: Outgoing,
  args: Arguments,
  options: CallOptions,
  read: (answer: Response) => T | Promise<T>,
  headers?: ConstructorParameters<typeof Headers>[0],
) => Promise<T>

const MOST_WAIT_MS = 30_000

/** Sends calls, and again where the service asks for that and nothing can happen twice. */
export function sendCalls(options: ClientOptions, authorize: (key: string) => Record<string, string>): SendCall {
  const { url, key, retries = 2, headers: common } = options
  const send = options.fetch ?? fetch
  const base = url.replace(/\/+$/, '')

  return async ({ method, path, keyed }, args, { signal, idempotencyKey }, read, more) => {
    const headers = new Headers({ ...common, ...(key !== undefined && authorize(key)) })
    for (const [name, value] of new Headers(more)) headers.set(name, value)
    const own = keyed && retries > 0 ? crypto.randomUUID() : undefined
    const once = idempotencyKey ?? own
    if (once !== undefined) headers.set('idempotency-key', once)
    if (args.body !== undefined) headers.set('content-type', 'application/json')
    const init: RequestInit = {
      method,
      headers,
      ...(args.body !== undefined && { body: JSON.stringify(args.body) }),
      ...(signal && { signal }),
    }
    const target = base + fill(path, args)
    const repeatable = method === 'GET' || once !== undefined
    for (let tried = 0; ; tried++) {
      const last = !repeatable || tried >= retries
      try {
        signal?.throwIfAborted()
        const sent = send(target, init)
        const answer = await (signal ? abortable(sent, signal) : sent)
        if (answer.ok) return await read(answer)
        const refusal = await refusalOf(answer)
        if (last || !isPassing(refusal)) throw refusal
        await pause(waitOf(answer, tried), signal)
      } catch (cause) {
        if (cause instanceof ClientError || signal?.aborted) throw cause
        if (last) throw new ClientError(`${url} does not answer`, { cause })
        await pause(waitOf(undefined, tried), signal)
      }
    }
  }
}

/** Path and query of a call. */
function fill(path: string, { params = {}, query = {} }: Arguments): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (params[name] === undefined) throw new TypeError(`${path} needs params.${name}`)
    return encodeURIComponent(String(params[name]))
  })
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value))
  return search.size === 0 ? filled : `${filled}?${search}`
}

/** Whether the same call may do better in a moment. A proxy that finds no service behind it answers without a code. */
export function isPassing({ status, code }: ClientError): boolean {
  if (status === 502 || status === 504) return code === undefined
  return status === 503 || (status === 429 && code !== 'budget_exceeded') || code === 'idempotency_in_progress'
}

function waitOf(answer: Response | undefined, tried: number): number {
  const seconds = Number(answer?.headers.get('retry-after'))
  const ms = seconds > 0 ? seconds * 1000 : 250 * 2 ** tried
  return Math.min(ms, MOST_WAIT_MS)
}

export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end)
      resolve()
    }, ms)
    if (signal?.aborted) end()
    else signal?.addEventListener('abort', end, { once: true })
  })
}
