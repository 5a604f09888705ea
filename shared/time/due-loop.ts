import type { Clock } from './clock.ts'

export interface DueLoopOptions {
  /** Does what is due and answers when the next is; undefined: nothing is in sight. */
  look: () => Promise<number | undefined>
  /** Told of a look that failed; the next one follows after the longest pause. */
  failed: (error: unknown) => void
  clock: Pick<Clock, 'now'>
  /** Another process may write what is due: it is looked for at least this often. */
  longestPauseMs?: number
}

/** Before the next look when something is due although one has just ended. */
const BREATH_MS = 50

/** Looks again and again, each time when the next thing is due; two looks are never under way at once. */
export function dueLoop({ look, failed, clock, longestPauseMs = 1000 }: DueLoopOptions) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let looking: Promise<void> | undefined
  let on = false
  let again = false

  async function tick(): Promise<void> {
    again = false
    let pauseMs = longestPauseMs
    try {
      const due = await look()
      const inMs = due === undefined ? longestPauseMs : due - clock.now().getTime()
      pauseMs = Math.min(longestPauseMs, inMs > 0 ? inMs : BREATH_MS)
    } catch (error) {
      failed(error)
    }
    plan(again ? 0 : pauseMs)
  }

  function plan(pauseMs: number): void {
    clearTimeout(timer)
    if (!on) return
    timer = setTimeout(() => {
      looking = tick().finally(() => {
        looking = undefined
      })
    }, pauseMs)
  }

  return {
    start(): void {
      if (on) return
      on = true
      plan(0)
    },
    /** Something may be due earlier than was known. */
    wake(): void {
      if (looking === undefined) plan(0)
      else again = true
    },
    /** Resolves when the look that is under way has ended. */
    async stop(): Promise<void> {
      on = false
      clearTimeout(timer)
      await looking
    },
  }
}
