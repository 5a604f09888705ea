import type { Context } from 'hono'
import {
  type Call as AnyCall,
  type Operation as AnyOperation,
  type HandlerResult,
  type OperationHost as OperationLimits,
  readCall as readAnyCall,
  toResponse,
} from '../../shared/http/operation.ts'
import { type BodyOf, type Endpoint, successStatus } from '../../shared/wire/endpoint.ts'
import type { Principal, RuntimeHttpEnv } from './http-env.ts'
import type { Idempotent } from './idempotent.ts'
import { type Idempotency, withoutKey } from './idempotent.ts'

/** One call of an operation of the runtime. */
export interface Call<E> extends AnyCall<E, RuntimeHttpEnv> {
  /** Undefined for an operation that asks for no key. */
  readonly principal: E extends { auth: 'bearer' } ? Principal : undefined
  readonly idempotency: Idempotency
}

/** How an operation that takes an `Idempotency-Key` answers the second call of a key. */
export interface Repeat<E> {
  /**
   * Answers a repeat whose first call created the object and died before its answer was stored: the same answer as the
   * first, with `"***"` for each one-time secret.
   */
  again(call: Call<E>, objectId: string): HandlerResult<E>
  /** The answer holds texts that can be deleted, or that only a node may keep: only the object's id is stored, and a repeat reads it by `again`. */
  byReference?: true
  /** Members of the answer that are shown once; stored and repeated as `"***"`. */
  oneTime?: readonly string[]
  /** A key that the body may carry for clients without headers; the header wins. */
  bodyKey?(body: BodyOf<E>): string | undefined
}

export interface OperationHost extends OperationLimits {
  idempotent: Idempotent
}

export type Operation = AnyOperation<RuntimeHttpEnv, OperationHost>

/** Ties a handler to an operation, whose schemas check what it gets and type what it returns. */
export function operation<const E extends Endpoint & { readonly idempotent?: never }>(
  endpoint: E,
  handle: (call: Call<E>) => HandlerResult<E>,
): Operation {
  const status = successStatus(endpoint)
  return {
    endpoint,
    async answer(context, { maxBodyBytes }) {
      const call = await readCall(endpoint, context, maxBodyBytes)
      return toResponse(context, await handle(call), status)
    },
  }
}

/** The same for an operation that takes an `Idempotency-Key`. */
export function keyedOperation<const E extends Endpoint & { readonly idempotent: true }>(
  endpoint: E,
  handle: (call: Call<E>) => HandlerResult<E>,
  { again, byReference, oneTime, bodyKey }: Repeat<E>,
): Operation {
  const status = successStatus(endpoint)
  return {
    endpoint,
    async answer(context, { maxBodyBytes, idempotent }) {
      const call = await readCall(endpoint, context, maxBodyBytes)
      return idempotent(context, {
        // Of a connector, the query names the action and may have arguments.
        body: endpoint.query ? [call.body, call.query] : call.body,
        bodyKey: bodyKey?.(call.body),
        oneTime,
        byReference,
        again: async objectId => toResponse(context, await again(call, objectId), status),
        run: async idempotency => toResponse(context, await handle({ ...call, idempotency }), status),
      })
    },
  }
}

async function readCall<E extends Endpoint>(
  endpoint: E,
  context: Context<RuntimeHttpEnv>,
  maxBodyBytes: number,
): Promise<Call<E>> {
  const call = await readAnyCall(endpoint, context, maxBodyBytes)
  context.set('body', call.body)
  // The gate sets it for each operation that asks for a key, and for no other.
  const principal = context.get('principal') as Call<E>['principal']
  return { ...call, principal, idempotency: withoutKey }
}
