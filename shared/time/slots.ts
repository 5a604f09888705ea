export type Slots = ReturnType<typeof createSlots>

/** A limit on what goes on at once; of one party who comes first is served first, and the parties that wait take turns. */
export function createSlots(limit: number) {
  let free = limit
  const waiting = createTurns<() => void>()

  function slot(): () => void {
    let held = true
    return () => {
      if (!held) return
      held = false
      const next = waiting.next()
      if (next === undefined) free += 1
      else next()
    }
  }

  return {
    /** Resolves to the function that gives the slot back; rejects with the signal's reason. */
    take(signal?: AbortSignal, party = ''): Promise<() => void> {
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
          waiting.remove(party, turn)
          reject(signal?.reason)
        }
        const turn = () => {
          signal?.removeEventListener('abort', onAbort)
          resolve(slot())
        }
        waiting.add(party, turn)
        signal?.addEventListener('abort', onAbort, { once: true })
      })
    },
  }
}

/** A queue for each party; the parties take turns, so one that brings much waits for itself alone. */
export function createTurns<T>() {
  const queues = new Map<string, T[]>()
  return {
    add(party: string, one: T): void {
      const queue = queues.get(party)
      if (queue === undefined) queues.set(party, [one])
      else queue.push(one)
    },
    /** The next one of a party that may have its turn now. */
    next(mayGo: (party: string) => boolean = () => true): T | undefined {
      for (const [party, queue] of queues) {
        if (!mayGo(party)) continue
        const one = queue.shift()
        queues.delete(party)
        if (queue.length > 0) queues.set(party, queue)
        return one
      }
      return undefined
    },
    remove(party: string, one: T): void {
      const queue = queues.get(party) ?? []
      const at = queue.indexOf(one)
      if (at >= 0) queue.splice(at, 1)
      if (queue.length === 0) queues.delete(party)
    },
    all: (): T[] => [...queues.values()].flat(),
  }
}
