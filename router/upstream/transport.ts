/** Header lines in order, repeated names kept apart. */
export type HeaderList = [name: string, value: string][]

export interface Timeouts {
  connectMs: number
  firstByteMs: number
  idleMs: number
}

export interface UpstreamRequest {
  method: string
  url: string
  headers: HeaderList
  body: Uint8Array<ArrayBuffer> | AsyncIterable<Uint8Array> | null
  signal: AbortSignal
  timeouts: Timeouts
}

export interface UpstreamHead {
  status: number
  headers: HeaderList
  /** True when the bytes are as the upstream sent them; false when the host has undone their content-encoding. */
  rawEncoding: boolean
}

export interface UpstreamResponse extends UpstreamHead {
  body: AsyncIterable<Uint8Array>
}

/** Takes an answer as it comes: `end` or `fail` is called once, and nothing after it. */
export interface AnswerSink {
  head(answer: UpstreamHead, resume: () => void): void
  /** False holds the answer up until `resume` is called. */
  chunk(bytes: Uint8Array): boolean
  end(): void
  fail(error: unknown): void
}

/** How upstreams are reached: `fetch` on edge hosts, a connection pool on Node. Redirects are never followed. */
export interface Transport {
  send(request: UpstreamRequest): Promise<UpstreamResponse>
  /** The same without a promise for each piece, where a host can do that. Returns what gives the call up, with the error to fail with. */
  relay?(request: Omit<UpstreamRequest, 'signal'>, sink: AnswerSink): (error: unknown) => void
  close(): Promise<void>
}

export type TimeLimit = 'connect' | 'first_byte' | 'idle' | 'content' | 'total'

/** The upstream gave no answer. `timeout` names the limit that passed. */
export class TransportError extends Error {
  override name = 'TransportError'
  readonly timeout: TimeLimit | undefined
  /** A proxy on the way did not let the call out: the message says which and what to do. */
  readonly byProxy: boolean

  constructor(message: string, options: { cause?: unknown; timeout?: TimeLimit; byProxy?: boolean } = {}) {
    super(message, { cause: options.cause })
    this.timeout = options.timeout
    this.byProxy = options.byProxy ?? false
  }
}

/** Not EADDRNOTAVAIL, which is also said of an IPv6 address on a machine without IPv6: another upstream may be reached then. */
const OWN_LIMITS = new Set(['EMFILE', 'ENFILE', 'ENOBUFS'])

/** Why this process could open no connection, which says nothing of the upstream; undefined where that is not the reason. */
export function ownLimit(error: unknown): string | undefined {
  for (let one = error, depth = 0; depth < 8 && one instanceof Error; one = one.cause, depth++) {
    // A name with several addresses: where one of them refused, that is the reason.
    if (one instanceof AggregateError && one.errors.length > 0) {
      const all = one.errors.map(ownLimit)
      return all.includes(undefined) ? undefined : all[0]
    }
    if (!('code' in one && OWN_LIMITS.has(String(one.code)))) continue
    return `this router can open no more connections now (${one.code}): try again; if it lasts, raise its limit of open files`
  }
  return undefined
}
