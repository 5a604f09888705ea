import type { Log } from '../../shared/log/log.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { EndedCall } from './ended-call.ts'
import type { Observation } from './observation.ts'

export interface RecorderDeps {
  make: (ended: EndedCall) => UnsealedTrace | Promise<UnsealedTrace>
  take: (record: UnsealedTrace, ended: EndedCall) => void
  log: Log
}

/** Turns ended observations into records, in turns of the event loop that no call is waiting for. */
export function recorder({ make, take, log }: RecorderDeps) {
  let waiting: { one: Observation; taken: ((error?: unknown) => void) | undefined }[] = []
  let idle: Promise<void> | undefined

  async function work(): Promise<void> {
    // One turn of the loop gathers what ended in it; its sockets have been served by then.
    await new Promise(resolve => setTimeout(resolve, 0))
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      for (const { one, taken } of batch) {
        try {
          const ended = one.call()
          take(await make(ended), ended)
          taken?.()
        } catch (error) {
          log.error('a call could not be recorded', { error, trace_id: one.traceId })
          taken?.(error)
        }
      }
    }
    idle = undefined
  }

  return {
    /** `taken` is called when the record is with the writer, or with the reason why there is none. */
    ended(one: Observation, taken?: (error?: unknown) => void): void {
      waiting.push({ one, taken })
      idle ??= work()
    },
    /** Resolves when everything that has ended is with the writer. */
    async settled(): Promise<void> {
      while (idle) await idle
    },
  }
}
