import type { Log } from '../../shared/log/log.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { rateLimitedLog } from '../traces/rate-limited-log.ts'
import type { BreakerChange } from './breakers.ts'

/** A line when a breaker opens and when it closes; of keys, which callers bring by the thousand, once a minute for a provider. */
export function breakerLines(log: Log, clock: Clock): (change: BreakerChange) => void {
  const once = rateLimitedLog(clock)
  return ({ provider, of, phase }) => {
    // Half open is a question; its answer is a line.
    if (phase === 'half_open') return
    const say = () => {
      if (phase === 'closed') log.info(`a ${of} is called again: its breaker is closed`, { provider })
      else log.warn(`a ${of} is not called for a while: its breaker is open`, { provider })
    }
    if (of === 'provider') say()
    else once(`${provider} ${phase}`, say)
  }
}
