import { type Log, REPEATS_OMITTED, rateLimitedLog } from '../log/log.ts'
import { systemClock } from '../time/clock.ts'
import { sleep } from '../time/sleep.ts'

export interface Inbox<T> {
  /** Takes an item; resolves when the sender may send the next. */
  put(item: T): Promise<void>
  /** Settles when everything that was put has been handled. */
  idle(): Promise<void>
  /** What is not handled yet is left: its sender still has it. */
  close(): void
}

const AGAIN_MS = 500

export interface InboxOptions<T> {
  log: Log
  /** How many things an item holds. */
  weigh?: (item: T) => number
  most?: number
}

/**
 * Hands on what came, in order, in batches: each is a commit, so what the loop has ready to be read belongs to the batch before it is
 * handed on (a stream gives its frames one by one, and a store that is written synchronously lets none come meanwhile: without
 * the pause every frame is a batch of its own). A batch that fails is handled again: its sender forgets it only when it is done.
 */
export function inbox<T>(
  handle: (batch: readonly T[]) => Promise<void>,
  { log, weigh = () => 1, most = 2048 }: InboxOptions<T>,
): Inbox<T> {
  let gathered: T[] = []
  let weight = 0
  let working: Promise<void> | undefined
  let closed = false
  const waiting: (() => void)[] = []
  const once = rateLimitedLog(systemClock)

  async function work(): Promise<void> {
    while (gathered.length > 0 && !closed) {
      if (weight < most) await sleep(0)
      const batch = gathered
      gathered = []
      weight = 0
      for (const resume of waiting.splice(0)) resume()
      while (!closed) {
        try {
          await handle(batch)
          break
        } catch (error) {
          if (closed) break
          once('kept', () => log.error(`frames could not be kept and are tried again; ${REPEATS_OMITTED}`, { error }))
          await sleep(AGAIN_MS)
        }
      }
    }
    working = undefined
  }

  return {
    async put(item) {
      if (closed) return
      gathered.push(item)
      weight += weigh(item)
      working ??= work()
      if (weight >= most) await new Promise<void>(resolve => waiting.push(resolve))
    },
    async idle() {
      while (working) await working
    },
    close() {
      closed = true
      for (const resume of waiting.splice(0)) resume()
    },
  }
}
