import type { UnsealedTrace } from '../../../shared/wire/router/trace.ts'
import type { unsealed } from '../../audit/unsealed.ts'
import type { StoreSettings } from '../../config/routing-config.ts'
import type { ownWriter } from '../../receipts.ts'
import type { FromWriter } from './messages.ts'

type Say = (message: FromWriter) => void

export interface RecordDeskDeps {
  durable: boolean
  begin: (store: StoreSettings) => ReturnType<typeof ownWriter> & { waiting: ReturnType<typeof unsealed> }
}

const STATUS_MS = 1000

/** Takes the records of other processes to the writer, and tells each of them what became of its own. */
export function recordDesk({ begin, durable }: RecordDeskDeps) {
  let at: ReturnType<RecordDeskDeps['begin']> | undefined
  let closed = false
  const from = new Set<Say>()
  const beat = setInterval(() => {
    for (const say of from) status(say)
  }, STATUS_MS)

  function status(say: Say): void {
    if (at) say({ status: at.writer.status() })
  }

  return {
    joined(store: StoreSettings, say: Say): void {
      if (!closed) at ??= begin(store)
      from.add(say)
      status(say)
    },
    left(say: Say): void {
      from.delete(say)
    },
    take(frame: number, records: readonly UnsealedTrace[], say: Say): void {
      // Of a writer that ends: the next one gets them.
      if (at === undefined || closed) return
      const { writer, waiting } = at
      const outcomes = records.map(async record => {
        if (writer.enqueue(record) === 'dropped') throw new Error('neither the store nor the disk takes records')
        waiting.took(record)
        await writer.recorded(record.trace_id)
      })
      void Promise.allSettled(outcomes).then(settled => {
        const lost = settled.flatMap((one, place) =>
          one.status === 'rejected' ? [{ id: records[place]!.trace_id, why: why(one.reason) }] : [],
        )
        say({ done: frame, lost })
        if (lost.length > 0 || durable) status(say)
      })
    },
    find: (id: string, tenant: string | undefined) => at?.waiting.find(id, tenant),
    async close(): Promise<void> {
      closed = true
      clearInterval(beat)
      await at?.old.close()
      await at?.writer.close()
    },
  }
}

const why = (error: unknown): string => (error instanceof Error ? error.message : String(error))
