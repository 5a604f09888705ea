import type { DialectName } from '../../shared/dialects/candidate.ts'
import { dialects } from '../../shared/dialects/dialects.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Price } from '../../shared/prices/price.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'
import type { Hashing } from '../receipt/request-part.ts'
import type { Observation } from './observation.ts'
import { type ObservedCall, observedRecord } from './record.ts'

export interface RecorderDeps {
  hashing: Hashing
  findPrice: () => Promise<(provider: string, dialect: DialectName, model: string) => Price | undefined>
  hashes: () => { config_hash: string; price_table_hash: string }
  enqueue: (record: UnsealedTrace) => void
  log: Log
}

export type Recorder = ReturnType<typeof recorder>

/** Turns ended observations into records, in turns of the event loop that no call is waiting for. */
export function recorder(deps: RecorderDeps) {
  let waiting: Observation[] = []
  let idle: Promise<void> | undefined

  async function work(): Promise<void> {
    // One turn of the loop gathers what ended in it; its sockets have been served by then.
    await new Promise(resolve => setTimeout(resolve, 0))
    const findPrice = await deps.findPrice()
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      for (const one of batch) {
        try {
          const call = await one.call()
          const dialect = dialects[dialectOf(call)]
          const price = (provider: string, model: string) => findPrice(provider, dialect.name, model)
          deps.enqueue(
            observedRecord(call, { dialect, hashing: deps.hashing, findPrice: price, hashes: deps.hashes() }),
          )
        } catch (error) {
          deps.log.error('a call could not be recorded', { error, trace_id: one.traceId })
        }
      }
    }
    idle = undefined
  }

  return {
    ended(one: Observation): void {
      waiting.push(one)
      idle ??= work()
    },
    /** Resolves when everything that has ended is with the writer. */
    async settled(): Promise<void> {
      while (idle) await idle
    },
  }
}

function dialectOf(call: ObservedCall): 'messages' | 'chat' {
  return call.inbound.api === 'chat' ? 'chat' : 'messages'
}
