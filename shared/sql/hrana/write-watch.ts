/** Whether a server takes writes, as far as this process has seen. */
export interface WriteHealth {
  /** A write has had no answer for long, and a read that was asked meanwhile has had one. */
  readonly stuck: boolean
  /** Calls `act` when that changes. */
  onChange(act: (stuck: boolean) => void): void
}

export interface WriteWatchOptions {
  /** Asks something that needs no lock. */
  read: () => Promise<unknown>
  afterMs?: number
}

/** Longer than a server lets one transaction hold the lock. */
const STUCK_MS = 10_000

/** Times each write, and looks whether the server answers a read where it does not answer that. */
export function writeWatch({ read, afterMs = STUCK_MS }: WriteWatchOptions) {
  const listeners: ((stuck: boolean) => void)[] = []
  let stuck = false

  function set(to: boolean): void {
    if (stuck === to) return
    stuck = to
    for (const act of listeners) act(to)
  }

  return {
    health: {
      get stuck() {
        return stuck
      },
      onChange: act => void listeners.push(act),
    } satisfies WriteHealth as WriteHealth,
    /** An answer of any kind ends the state; that there is none, or that nothing could be sent, says nothing. */
    async timed<T>(write: () => Promise<T>): Promise<T> {
      let waiting = true
      const late = setTimeout(() => {
        const found = () => {
          if (waiting) set(true)
        }
        read().then(found, () => undefined)
      }, afterMs)
      try {
        const answer = await write()
        set(false)
        return answer
      } finally {
        waiting = false
        clearTimeout(late)
      }
    },
  }
}
