import { ApiError } from '../../shared/http/api-error.ts'
import type { Principal } from './http-env.ts'

/**
 * An object that was looked up by its id, if it belongs to the caller's tenant (docs/spec/runtime.md §13). Unknown: 404; another
 * tenant's: 403 and not a word about it. What is looked up by name is looked up inside the tenant, so it never gets here.
 */
export function own<T extends { tenantId: string }>(
  { tenantId }: Pick<Principal, 'tenantId'>,
  row: T | undefined,
  what: string,
  id: string,
): T {
  if (row === undefined) throw notFound(what, id)
  if (row.tenantId !== tenantId) throw new ApiError('forbidden_tenant', 'this belongs to another tenant')
  return row
}

/** `run not found: <id>`; what came from outside is cut, as it is repeated in the answer. */
export function notFound(what: string, id: string): ApiError<'not_found'> {
  return new ApiError('not_found', `${what} not found: ${id.slice(0, 128)}`)
}
