import type { z } from 'zod'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Who may call: `router-key` and `metrics` are open where the operator set no key, `router-admin` never is by then. */
export type Auth = 'none' | 'bearer' | 'cookie' | 'router-key' | 'router-admin' | 'metrics'

export interface Answer {
  readonly description: string
  readonly schema?: z.ZodType
  /** Default `application/json` when there is a schema. */
  readonly contentType?: string | readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

/** One operation as both sides see it; the server, the typed client and the OpenAPI document read the same value. */
export interface Endpoint {
  readonly id: string
  readonly method: Method
  /** OpenAPI form: `/v1/runs/{id}`. */
  readonly path: `/${string}`
  readonly tag: string
  readonly summary: string
  readonly description?: string
  readonly auth: Auth
  /** Any one suffices. */
  readonly scopes?: readonly string[]
  readonly params?: z.ZodType
  readonly query?: z.ZodType
  readonly headers?: z.ZodType
  readonly body?: z.ZodType
  readonly responses: Readonly<Record<number, Answer>>
  /** Reads `Idempotency-Key`. */
  readonly idempotent?: boolean
  /** Statuses answered with the service's error body. */
  readonly errors: readonly number[]
  /** Where the error body is not the service's own, as on the provider dialects. */
  readonly errorSchema?: z.ZodType
}

/** Keeps the literal types, so that a client can infer its arguments and answers from the value. */
export function endpoint<const E extends Endpoint>(value: E): E {
  return value
}
