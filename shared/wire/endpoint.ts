import type { z } from 'zod'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Who may call: `router-key` and `metrics` are open where the operator set no key, `router-admin` never is by then. */
export type Auth = 'none' | 'bearer' | 'cookie' | 'router-key' | 'router-admin' | 'metrics'

export interface Answer {
  readonly description: string
  readonly schema?: z.ZodType
  /** Default `application/json` when there is a schema. */
  readonly contentType?: string | readonly string[]
  /** A form that `Accept` asks for, as a text. */
  readonly asText?: string
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

/** The path parameters of an operation, as its handler gets them. */
export type ParamsOf<E> = E extends { params: infer S extends z.ZodType } ? z.output<S> : Readonly<Record<never, never>>

export type QueryOf<E> = E extends { query: infer S extends z.ZodType } ? z.output<S> : Readonly<Record<never, never>>

export type BodyOf<E> = E extends { body: infer S extends z.ZodType } ? z.output<S> : undefined

type Success = 200 | 201 | 202 | 204

// biome-ignore lint/suspicious/noConfusingVoidType: a handler that answers without a body returns nothing
type NoBody = void

/** What a successful call answers: nothing where there is no body. */
export type AnswerOf<E> = E extends { responses: infer R }
  ? {
      [S in keyof R & Success]: R[S] extends { schema: infer T extends z.ZodType } ? z.output<T> : NoBody
    }[keyof R & Success]
  : never

/** The status of a successful answer: the lowest one that the operation declares. */
export function successStatus({ responses }: Pick<Endpoint, 'responses'>): number {
  const [lowest] = Object.keys(responses)
    .map(Number)
    .filter(status => status >= 200 && status < 300)
    .toSorted((a, b) => a - b)
  if (lowest === undefined) throw new Error('an operation without a successful answer')
  return lowest
}
