import { MOVING } from '../../shared/sql/db-fault.ts'
import { type ErrorBody, type ErrorCode, statusOf } from '../../shared/wire/runtime/error.ts'

/** What the router of shards answers by itself, in the form of every other refusal. */
export function refused(code: ErrorCode, error: string, headers: Record<string, string> = {}): Response {
  const body: ErrorBody = { error, code }
  return Response.json(body, { status: statusOf[code], headers })
}

const later = (error: string, seconds: number) =>
  refused('store_unavailable', error, { 'retry-after': String(seconds) })

export const shardAway = () =>
  later('the store does not answer: try again in a moment, with the same Idempotency-Key where something is made', 5)

export const tenantMoves = () => later(MOVING, 2)

export const notServed = (shard: string) =>
  later(`this process does not serve shard ${shard}: ask one whose PLATFORM_SHARDS names it, or leave that unset`, 5)

/** The same question once more, for another shard: of what has no body. The request of a host may be no `Request` that can be copied. */
export const copyRequest = ({ url, method, headers }: Request): Request => new Request(url, { method, headers })
