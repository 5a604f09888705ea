import { expect } from 'vitest'

/**
 * Holds a time against its limit. On a machine that does other work as well the limit grows by as much as a fixed piece of work now takes
 * longer than its time on the processor; on a quiet one it is what it is.
 */
export function expectWithin(tookMs: number, limitMs: number, what?: string): void {
  if (tookMs < limitMs) return
  expect(tookMs, what).toBeLessThan(limitMs * crowding())
}

/** How many times longer this process takes than it would alone: 1 or more. */
function crowding(): number {
  const [start, before] = [performance.now(), process.cpuUsage()]
  while (performance.now() - start < 300);
  const { user, system } = process.cpuUsage(before)
  return Math.max(1, (performance.now() - start) / Math.max(1, (user + system) / 1000))
}
