import type { RunObserver } from './engine-deps.ts'

/** An observer may not hold up a run. */
export function observers(all: readonly RunObserver[], failed: (error: unknown) => void): RunObserver {
  const each = (tell: (one: RunObserver) => void) => {
    for (const one of all) {
      try {
        tell(one)
      } catch (error) {
        failed(error)
      }
    }
  }
  return {
    kept: (run, entries) => each(one => one.kept(run, entries)),
    ended: ended => each(one => one.ended(ended)),
  }
}
