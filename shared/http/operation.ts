import type { Context, Env, Hono, MiddlewareHandler } from 'hono'
import {
  type AnswerOf,
  type BodyOf,
  type Endpoint,
  type ParamsOf,
  type QueryOf,
  successStatus,
} from '../wire/endpoint.ts'
import { checked, jsonBytes, readBodyAs } from './validate.ts'

/** One call of an operation, read and checked by the operation's own schemas. */
export interface Call<E, V extends Env> {
  readonly endpoint: E
  readonly params: ParamsOf<E>
  readonly query: QueryOf<E>
  readonly body: BodyOf<E>
  /** The body as it came. */
  readonly bytes: Uint8Array<ArrayBuffer>
  /** For what only HTTP has: headers, cookies, addresses, streams. */
  readonly context: Context<V>
}

/** What a handler returns: a `Response` where the answer has a status or a stream of its own. */
export type HandlerResult<E> = AnswerOf<E> | Response | Promise<AnswerOf<E> | Response>

/** What operations need of the service that they are mounted on. */
export interface OperationHost {
  maxBodyBytes: number
}

/** An operation with its handler; `mount` puts it on an app. */
export interface Operation<V extends Env, H extends OperationHost = OperationHost> {
  readonly endpoint: Endpoint
  readonly answer: (context: Context<V>, host: H) => Promise<Response>
}

/** Ties a handler to an operation, whose schemas check what it gets and type what it returns. */
export const operationIn =
  <V extends Env>() =>
  <const E extends Endpoint>(endpoint: E, handle: (call: Call<E, V>) => HandlerResult<E>): Operation<V> => {
    const status = successStatus(endpoint)
    return {
      endpoint,
      async answer(context, { maxBodyBytes }) {
        const call = await readCall(endpoint, context, maxBodyBytes)
        return toResponse(context, await handle(call), status)
      },
    }
  }

/** The assertions say what the schemas have checked: each type is derived from the schema of its part. */
export async function readCall<E extends Endpoint, V extends Env>(
  endpoint: E,
  context: Context<V>,
  maxBodyBytes: number,
): Promise<Call<E, V>> {
  const { req } = context
  const bytes = endpoint.body ? await jsonBytes(req.raw, maxBodyBytes) : new Uint8Array()
  return {
    endpoint,
    body: (endpoint.body && readBodyAs(endpoint.body, bytes)) as BodyOf<E>,
    params: req.valid('param' as never) as ParamsOf<E>,
    query: req.valid('query' as never) as QueryOf<E>,
    bytes,
    context,
  }
}

export function toResponse(context: Context, answer: unknown, status: number): Response {
  if (answer instanceof Response) return answer
  return answer === undefined ? context.body(null, status as 204) : context.json(answer, status as 200)
}

/** Puts operations on an app, each under its method and path. `before` stands in front of a handler: it refuses a call, or lets it pass. */
export function mount<V extends Env, H extends OperationHost>(
  app: Hono<V>,
  operations: readonly Operation<V, H>[],
  host: H,
  before: (endpoint: Endpoint) => readonly MiddlewareHandler<V>[] = () => [],
): Hono<V> {
  // The app takes the first route that matches: in this order `/v1/runs/forecast` stands before `/v1/runs/{id}`.
  for (const { endpoint, answer } of operations.toSorted((a, b) => (a.endpoint.path < b.endpoint.path ? -1 : 1))) {
    const path = endpoint.path.replaceAll(/\{(\w+)\}/g, ':$1')
    app.on(endpoint.method, [path], ...before(endpoint), ...checks(endpoint), context => answer(context, host))
  }
  return app
}

function checks({ params, query }: Endpoint): MiddlewareHandler[] {
  return [...(params ? [checked('param', params)] : []), ...(query ? [checked('query', query)] : [])]
}
