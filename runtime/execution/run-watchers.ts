import { type Db, rowsOf } from '../../shared/sql/db.ts'
import type { JournalEntry } from './journal/event.ts'

export interface Watcher {
  /** Entries that this process just kept, in order; they may begin after a gap. */
  entries(entries: readonly JournalEntry[]): void
  /** Another process committed entries up to `seq`, or ended the run. */
  moved(seq: number, terminal: boolean): void
}

export type RunWatchers = ReturnType<typeof runWatchers>

/** What came of a run while it was noted. */
export interface Progress {
  /** What this process kept; they may begin after a gap. */
  lists: (readonly JournalEntry[])[]
  /** How far the run came otherwise. */
  seq: number
  terminal: boolean
}

const POLL_MS = 200
/** Between the read that a stream begins with and its first turn is a moment; a reader that never comes leaves nothing behind. */
const NOTED_MS = 5000
/** Up to so many watchers get every entry as it comes. */
const FEW = 16
const MOST_WAIT_MS = 20

interface Room {
  watchers: Set<Watcher>
  /** Entries that wait until those before them have gone out. */
  gathered: JournalEntry[]
  telling: boolean
}

/** How far runs have come that are executed elsewhere. */
const PROGRESS = `select id, status in ('succeeded', 'failed', 'cancelled') as terminal,
    max((select coalesce(max(seq), 0) from events where run_id = id),
      coalesce((select event_seq from remote_runs where run_id = id), 0)) as seq
  from runs where id in (select value from json_each(?))`

/**
 * Tells those who watch a run what was just kept. What this process keeps is handed on as it is; for runs of other processes
 * one query every 200 ms asks for all of them how far they have come. Costs nothing without watchers. With many, what
 * comes while the last is still going out is gathered and goes out as one (a thousand readers: one write for four entries).
 */
export function runWatchers(db: Db, isHere: (runId: string) => boolean) {
  const rooms = new Map<string, Room>()
  let timer: ReturnType<typeof setTimeout> | undefined

  function schedule(): void {
    if (timer !== undefined || rooms.size === 0) return
    timer = setTimeout(async () => {
      await poll().catch(() => undefined)
      timer = undefined
      schedule()
    }, POLL_MS)
  }

  async function poll(): Promise<void> {
    const elsewhere = [...rooms.keys()].filter(id => !isHere(id))
    if (elsewhere.length === 0) return
    const answer = await db.execute({ sql: PROGRESS, args: [JSON.stringify(elsewhere)] })
    const rows = rowsOf<{ id: string; terminal: number; seq: number }>(answer)
    for (const { id, seq, terminal } of rows) tell(id, one => one.moved(seq, terminal === 1))
    const found = new Set(rows.map(({ id }) => id))
    // Deleted while it was watched.
    for (const id of elsewhere) if (!found.has(id)) tell(id, one => one.moved(0, true))
  }

  function tell(runId: string, what: (one: Watcher) => void): void {
    const room = rooms.get(runId)
    if (room) for (const one of [...room.watchers]) what(one)
  }

  function handOut(room: Room): void {
    const entries = room.gathered
    room.gathered = []
    if (entries.length === 0) return
    for (const one of [...room.watchers]) one.entries(entries)
    if (room.watchers.size <= FEW) return
    room.telling = true
    const started = performance.now()
    // The writes follow in this turn of the loop; then it is free for a while, so that the next burst is whole.
    setTimeout(() => {
      const took = performance.now() - started
      setTimeout(
        () => {
          room.telling = false
          handOut(room)
        },
        Math.min(took / 4, MOST_WAIT_MS),
      )
    }, 0)
  }

  function watch(runId: string, watcher: Watcher): () => void {
    const room = rooms.get(runId) ?? { watchers: new Set(), gathered: [], telling: false }
    room.watchers.add(watcher)
    rooms.set(runId, room)
    schedule()
    return () => {
      room.watchers.delete(watcher)
      if (room.watchers.size > 0 || rooms.get(runId) !== room) return
      rooms.delete(runId)
      if (rooms.size > 0) return
      clearTimeout(timer)
      timer = undefined
    }
  }

  return {
    watch,
    note: (runId: string) => noteProgress(runId, watch),
    kept(runId: string, entries: readonly JournalEntry[]): void {
      const room = rooms.get(runId)
      if (room === undefined) return
      room.gathered.push(...entries)
      if (!room.telling) handOut(room)
    },
    /** A report of how far a run has come that is executed elsewhere. */
    moved(runId: string, seq: number, terminal: boolean): void {
      tell(runId, one => one.moved(seq, terminal))
    },
    ended(runId: string, seq: number): void {
      const room = rooms.get(runId)
      if (room === undefined) return
      handOut(room)
      tell(runId, one => one.moved(seq, true))
    },
    /** The service stops: its watchers reconnect to the next one. */
    close(): void {
      for (const runId of [...rooms.keys()]) tell(runId, one => one.moved(0, true))
    },
    /** Runs with watchers in this process. */
    get watched() {
      return rooms.size
    },
  }
}

/**
 * For a reader that reads before it watches: notes what comes of the run from now on. What it returns ends that and tells it; undefined
 * after too long, when nothing is known.
 */
function noteProgress(
  runId: string,
  watch: (runId: string, watcher: Watcher) => () => void,
): () => Progress | undefined {
  const progress: Progress = { lists: [], seq: 0, terminal: false }
  const leave = watch(runId, {
    entries: list => void progress.lists.push(list),
    moved(seq, terminal) {
      progress.seq = Math.max(progress.seq, seq)
      progress.terminal ||= terminal
    },
  })
  let known: Progress | undefined = progress
  const late = setTimeout(() => {
    known = undefined
    leave()
  }, NOTED_MS)
  return () => {
    clearTimeout(late)
    leave()
    return known
  }
}
