import { type Operation as AnyOperation, operationIn } from '../../shared/http/operation.ts'
import type { RouterHttpEnv } from '../auth/access.ts'

export type Operation = AnyOperation<RouterHttpEnv>

/** Ties a handler to an operation of the router; the caller stands in the context. */
export const operation = operationIn<RouterHttpEnv>()
