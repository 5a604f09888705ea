/** A request as the vendor's documentation has it: nothing more and nothing less may be sent. */
export interface Expected {
  method: string
  /** As it travels, encoded. */
  path: string
  query?: Readonly<Record<string, string | readonly string[]>>
  json?: unknown
  form?: Readonly<Record<string, string>>
  /** Beside those of every request of the fixture. */
  headers?: Readonly<Record<string, string>>
}

export interface Answered {
  /** Default 200. */
  status?: number
  headers?: Readonly<Record<string, string>>
  /** Sent as JSON; absent: no body. */
  body?: unknown
  /** Sent as it is. */
  raw?: string
}

export type Exchange = readonly [Expected, Answered]

export interface ActionFixture {
  arguments: Readonly<Record<string, unknown>>
  exchanges: readonly [Exchange, ...Exchange[]]
  /** With `nextCursor` where there is a second page. */
  result: Readonly<Record<string, unknown>>
  /** What the first request is answered with when there is nothing, and what comes of it. */
  empty: { answer: Answered; result: Readonly<Record<string, unknown>> }
  /** The page behind `nextCursor`; lists have one. */
  second?: { exchanges: readonly Exchange[]; result: Readonly<Record<string, unknown>> }
}

/** A connector and its vendor, written from the vendor's public documentation. */
export interface Fixture {
  config: Readonly<Record<string, unknown>>
  /** Sent with every request. */
  headers: Readonly<Record<string, string>>
  /** How credentials are refused. */
  refused: Answered
  /** How a request fails: in a 200 where the vendor does that. */
  fault: Answered & { message: string }
  /** How the vendor asks for patience; default 429 with Retry-After. */
  limited?: Answered
  probe: { exchanges: readonly Exchange[]; account: string | undefined }
  actions: Readonly<Record<string, ActionFixture>>
}

export const get = (path: string, query?: Expected['query']): Expected => ({
  method: 'GET',
  path,
  ...(query && { query }),
})
export const post = (path: string, json: unknown): Expected => ({ method: 'POST', path, json })
export const postForm = (path: string, form: Record<string, string>): Expected => ({ method: 'POST', path, form })
export const ok = (body: unknown, headers?: Record<string, string>): Answered => ({ body, ...(headers && { headers }) })
