import type { Log } from '../log/log.ts'
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

/**
 * Hands on what came, in order, everything that gathered while the last batch was being handled as the next one. A batch that
 * fails is handled again: whoever sent it forgets it only when it is done.
 */
export function inbox<T>(
  handle: (batch: readonly T[]) => Promise<void>,
  { log, most = 2048 }: { log: Log; most?: number },
): Inbox<T> {
  let gathered: T[] = []
  let working: Promise<void> | undefined
  let closed = false
  const waiting: (() => void)[] = []

  async function work(): Promise<void> {
    while (gathered.length > 0 && !closed) {
      const batch = gathered
      gathered = []
      for (const resume of waiting.splice(0)) resume()
      while (!closed) {
        try {
          await handle(batch)
          break
        } catch (error) {
          log.error('frames could not be kept and are tried again', { error })
          await sleep(AGAIN_MS)
        }
      }
    }
    working = undefined
  }

  return {
    async put(item) {
      gathered.push(item)
      working ??= work()
      if (gathered.length >= most) await new Promise<void>(resolve => waiting.push(resolve))
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
