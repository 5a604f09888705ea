/** Tasks that run after the response: each has its own abort signal, and `close` aborts all of them and waits for their end. */
export function backgroundTasks() {
  // One controller for each: an edge host lets a request use what it opened itself, and nothing of another.
  const running = new Map<AbortController, Promise<unknown>>()
  let closed = false
  const settled = async (): Promise<void> => {
    await Promise.all(running.values())
  }
  return {
    get size(): number {
      return running.size
    },
    get closed(): boolean {
      return closed
    },
    /** Does nothing after `close`. The task must not reject. */
    start(task: (signal: AbortSignal) => Promise<unknown>): void {
      if (closed) return
      const stop = new AbortController()
      running.set(
        stop,
        task(stop.signal).finally(() => running.delete(stop)),
      )
    },
    /** Resolves when the tasks that run now have ended. */
    settled,
    async close(): Promise<void> {
      closed = true
      for (const stop of running.keys()) stop.abort()
      await settled()
    },
  }
}
