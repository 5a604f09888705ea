const FIRST_MS = 1000
const MOST_MS = 60_000
const JITTER = 0.2

/** How long a node waits before it dials again: 1 s, doubling to 60 s, each ±20 % so that many nodes spread out. */
export function redialDelay(failures: number, random: () => number): number {
  const full = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(Math.max(0, failures - 1), 20))
  return Math.round(full * (1 - JITTER + 2 * JITTER * random()))
}
