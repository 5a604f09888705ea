import type { Context, ErrorHandler, NotFoundHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { ApiError } from '../shared/http/api-error.ts'
import { type Log, REPEATS_OMITTED, rateLimitedLog } from '../shared/log/log.ts'
import { DamagedRowError } from '../shared/sql/db.ts'
import { isMoving, isStoreUnavailable, MOVING } from '../shared/sql/db-fault.ts'
import { QueueClosedError } from '../shared/sql/group-commit.ts'
import { storeFault } from '../shared/sql/store-faults.ts'
import { systemClock } from '../shared/time/clock.ts'
import { type ErrorBody, type ErrorCode, statusOf } from '../shared/wire/runtime/error.ts'
import { VaultError } from './vault/vault.ts'

const UNOPENED =
  'a sealed text of the store does not open: it was changed, or sealed under another master key (runtime doctor tells); save it again, or restore a backup'

/** The one place that answers an error: a refusal with its own words, anything unknown in brief and logged in full. */
export function answerErrors(log: Log, clock = systemClock): ErrorHandler {
  const once = rateLimitedLog(clock)
  return (error, c) => {
    const at = { error, method: c.req.method, path: c.req.path, requestId: c.get('requestId') }
    if (error instanceof ApiError && isCode(error.code)) return refusal(c, error, error.code)
    if (error instanceof HTTPException && error.status < 500) {
      return refusal(c, new ApiError('validation_failed', error.message), 'validation_failed')
    }
    if (error instanceof QueueClosedError) return refusal(c, stopping(error), 'draining')
    if (isMoving(error)) {
      const moves = new ApiError('store_unavailable', MOVING, { headers: { 'retry-after': '2' }, cause: error })
      return refusal(c, moves, 'store_unavailable')
    }
    if (isStoreUnavailable(error)) {
      // Every call fails while it is away.
      once('away', () => log.warn(`the store was not reached; ${REPEATS_OMITTED}`, at))
      return refusal(c, storeAway(error), 'store_unavailable')
    }
    const fault = storeFault(error)
    if (fault !== undefined) {
      once(fault, () => log.error(`the store refused a statement; ${REPEATS_OMITTED}`, at))
      const refused = new ApiError('store_unavailable', fault, { headers: { 'retry-after': '30' }, cause: error })
      return refusal(c, refused, 'store_unavailable')
    }
    if (error instanceof DamagedRowError || error instanceof VaultError) {
      log.error('something stored cannot be read', at)
      const says = error instanceof DamagedRowError ? error.message : UNOPENED
      return c.json({ error: says, code: 'internal' } satisfies ErrorBody, 500)
    }
    if (c.req.raw.signal.aborted) log.debug('the client left before its answer', at)
    else log.error('request failed', at)
    return c.json({ error: 'internal error', code: 'internal' } satisfies ErrorBody, 500)
  }
}

/** Nothing was written: another instance, or this one once it is back, takes the call. */
export function stopping(cause?: unknown): ApiError<'draining'> {
  const message = 'the service is stopping: try again in a moment'
  return new ApiError('draining', message, { headers: { 'retry-after': '5' }, cause })
}

/** A commit whose answer was lost may have happened: only a key makes it safe to ask again. */
function storeAway(cause: unknown): ApiError {
  const message =
    'the store does not answer: try again in a moment, with the same Idempotency-Key where something is made'
  return new ApiError('store_unavailable', message, { headers: { 'retry-after': '5' }, cause })
}

export const answerUnknownRoute: NotFoundHandler = c =>
  c.json({ error: `route not found: ${c.req.method} ${c.req.path}`, code: 'not_found' } satisfies ErrorBody, 404)

function refusal(c: Context, error: ApiError, code: ErrorCode): Response {
  const { details, members } = error
  const body: ErrorBody = { ...members, error: error.message, code, ...(details && { details: [...details] }) }
  return c.json(body, statusOf[code], { ...error.headers })
}

function isCode(code: string): code is ErrorCode {
  return Object.hasOwn(statusOf, code)
}
