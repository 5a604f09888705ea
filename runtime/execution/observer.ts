import type { RunObserver } from './engine-deps.ts'

/** Nobody who only looks on may keep a run from its way. */
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
