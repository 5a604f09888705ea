import type { Log } from '../../shared/log/log.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { Model } from '../config/model.ts'
import { rateLimitedLog } from '../traces/rate-limited-log.ts'
import type { RefusedCall } from './call-upstream.ts'

/**
 * Says that an upstream refuses: what its operator should know (limits, keys, outages) as a warning once a minute for each model, what
 * is about one request as a line of debugging.
 */
export function refusalLines(log: Log, clock: Clock): (model: Model, call: RefusedCall) => void {
  const once = rateLimitedLog(clock)
  return ({ provider, model }, { status, errorClass: error_class, upstreamRequestId }) => {
    const fields = { provider, model, status, error_class, upstream_request_id: upstreamRequestId }
    if (error_class === 'upstream_4xx' || error_class === 'context_overflow' || error_class === 'thinking_mismatch') {
      log.debug('an upstream refused a request', fields)
      return
    }
    once(`${model} ${error_class}`, () =>
      log.warn('an upstream refuses calls; further ones within a minute are not logged', fields),
    )
  }
}
