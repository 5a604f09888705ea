import type { Log } from '../../shared/log/log.ts'
import { type Db, type RowOf, rowsOf } from '../../shared/sql/db.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { feedback } from '../schema/tables.ts'

/** How long what another process was told may stay unheard here. */
const STALE_MS = 1000
const MOST_AT_ONCE = 1000

type Row = Pick<RowOf<typeof feedback>, 'trace_id' | 'verdict'> & { rowid: number }

export interface ReportsElsewhereDeps {
  db: Db
  clock: Clock
  log: Log
  /** The answer of this call was reported wrong. */
  wrong: (traceId: string) => void
}

/**
 * Negative reports that other processes on the store took, such as the audit server. Before a kept answer is given again it is asked what
 * has been said since, at most once a second; a router that keeps no answers never asks.
 */
export async function reportsElsewhere({ db, clock, log, wrong }: ReportsElsewhereDeps): Promise<() => Promise<void>> {
  const newest = await db.execute('select coalesce(max(rowid), 0) as rowid from feedback')
  let upTo = rowsOf<Pick<Row, 'rowid'>>(newest)[0]!.rowid
  let askedAt = clock.monotonic()
  let asking: Promise<void> | undefined

  async function ask(): Promise<void> {
    for (;;) {
      const answer = await db.execute({
        sql: 'select rowid, trace_id, verdict from feedback where rowid > ? order by rowid limit ?',
        args: [upTo, MOST_AT_ONCE],
      })
      const rows = rowsOf<Row>(answer)
      for (const row of rows) if (row.verdict === 'fail') wrong(row.trace_id)
      upTo = rows.at(-1)?.rowid ?? upTo
      if (rows.length < MOST_AT_ONCE) return
    }
  }

  return async () => {
    if (clock.monotonic() - askedAt < STALE_MS) return
    asking ??= ask()
      .catch((error: unknown) => log.warn('reports of other processes could not be read', { error }))
      .finally(() => {
        askedAt = clock.monotonic()
        asking = undefined
      })
    await asking
  }
}
