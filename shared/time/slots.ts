export type Slots = ReturnType<typeof createSlots>

/** A limit on what goes on at once; who comes first is served first. */
export function createSlots(limit: number) {
  let free = limit
  const waiting: (() => void)[] = []

  function slot(): () => void {
    let held = true
    return () => {
      if (!held) return
      held = false
      const next = waiting.shift()
      if (next === undefined) free += 1
      else next()
    }
  }

  return {
    /** Resolves to the function that gives the slot back; rejects with the signal's reason. */
    take(signal?: AbortSignal): Promise<() => void> {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason)
          return
        }
        if (free > 0) {
          free -= 1
          resolve(slot())
          return
        }
        const onAbort = () => {
          waiting.splice(waiting.indexOf(turn), 1)
          reject(signal?.reason)
        }
        const turn = () => {
          signal?.removeEventListener('abort', onAbort)
          resolve(slot())
        }
        waiting.push(turn)
        signal?.addEventListener('abort', onAbort, { once: true })
      })
    },
  }
}
