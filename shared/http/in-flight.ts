/** The calls that were taken and have no answer yet, so that a service which stops can let them come to their end. */
export function inFlight() {
  const calls = new Set<Promise<unknown>>()
  return {
    track<T>(call: Promise<T>): Promise<T> {
      calls.add(call)
      const over = () => void calls.delete(call)
      call.then(over, over)
      return call
    },

    /** Resolves when every call that was taken has its answer, and after `ms` in any case. */
    async settled(ms: number): Promise<void> {
      if (calls.size === 0) return
      let timer: ReturnType<typeof setTimeout> | undefined
      const late = new Promise<void>(resolve => {
        timer = setTimeout(resolve, ms)
      })
      const all = async () => {
        while (calls.size > 0) await Promise.allSettled([...calls])
      }
      await Promise.race([all(), late])
      clearTimeout(timer)
    },
  }
}
