import type { Db } from '../../shared/sql/db.ts'
import type { JournalEntry } from './journal/event.ts'

export interface Watcher {
  /** Entries that this process just kept, in order; they may begin after a gap. */
  entries(entries: readonly JournalEntry[]): void
  /** Somebody else kept entries up to `seq`, or ended the run. */
  moved(seq: number, terminal: boolean): void
}

export type Hub = ReturnType<typeof hub>

const POLL_MS = 200

/**
 * Tells those who watch a run what was just kept. What this process keeps is handed on as it is; for runs of other processes
 * one query every 200 ms asks for all of them how far they have come. Costs nothing where nobody watches.
 */
export function hub(db: Db, isHere: (runId: string) => boolean) {
  const watchers = new Map<string, Set<Watcher>>()
  let timer: ReturnType<typeof setTimeout> | undefined

  function schedule(): void {
    if (timer !== undefined || watchers.size === 0) return
    timer = setTimeout(async () => {
      await poll().catch(() => undefined)
      timer = undefined
      schedule()
    }, POLL_MS)
  }

  async function poll(): Promise<void> {
    const elsewhere = [...watchers.keys()].filter(id => !isHere(id))
    if (elsewhere.length === 0) return
    const { rows } = await db.execute({
      sql: `select id, status in ('succeeded', 'failed', 'cancelled') as terminal,
          (select coalesce(max(seq), 0) from events where run_id = id) as seq
        from runs where id in (select value from json_each(?))`,
      args: [JSON.stringify(elsewhere)],
    })
    for (const row of rows) tell(String(row.id), one => one.moved(Number(row.seq), Number(row.terminal) === 1))
    const found = new Set(rows.map(row => String(row.id)))
    // Deleted while it was watched.
    for (const id of elsewhere) if (!found.has(id)) tell(id, one => one.moved(0, true))
  }

  function tell(runId: string, what: (one: Watcher) => void): void {
    const all = watchers.get(runId)
    if (all) for (const one of [...all]) what(one)
  }

  return {
    watch(runId: string, watcher: Watcher): () => void {
      const all = watchers.get(runId) ?? new Set()
      all.add(watcher)
      watchers.set(runId, all)
      schedule()
      return () => {
        all.delete(watcher)
        if (all.size > 0 || watchers.get(runId) !== all) return
        watchers.delete(runId)
        if (watchers.size > 0) return
        clearTimeout(timer)
        timer = undefined
      }
    },
    kept(runId: string, entries: readonly JournalEntry[]): void {
      if (watchers.has(runId)) tell(runId, one => one.entries(entries))
    },
    ended(runId: string, seq: number): void {
      if (watchers.has(runId)) tell(runId, one => one.moved(seq, true))
    },
    /** The service stops: whoever watches comes back to the next one. */
    close(): void {
      for (const runId of [...watchers.keys()]) tell(runId, one => one.moved(0, true))
    },
    /** Runs that somebody watches here. */
    get watched() {
      return watchers.size
    },
  }
}
