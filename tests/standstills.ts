const BEAT_MS = 20

/**
 * Watches this process for moments in which the machine did not let it run. A case with times of its own that fell into one says
 * nothing about the code: it is done again.
 */
export function standstills() {
  const seen: { fromMs: number; toMs: number }[] = []
  let lastMs = performance.now()
  const timer = setInterval(() => {
    const nowMs = performance.now()
    if (nowMs - lastMs > 2 * BEAT_MS) seen.push({ fromMs: lastMs + BEAT_MS, toMs: nowMs })
    lastMs = nowMs
  }, BEAT_MS)
  return {
    /** The longest one between two times of `performance.now()`. */
    longest: (fromMs: number, toMs: number): number =>
      seen.reduce(
        (most, one) => (one.toMs > fromMs && one.fromMs < toMs ? Math.max(most, one.toMs - one.fromMs) : most),
        0,
      ),
    stop: () => clearInterval(timer),
  }
}
