import { nextTurn } from '../../shared/time/sleep.ts'
import type { JournalEntry } from '../execution/journal/event.ts'
import type { Progress, RunWatchers } from '../execution/run-watchers.ts'
import type { JournalPage, RunStore } from './store.ts'

export interface FollowDeps {
  runs: Pick<RunStore, 'page' | 'progress'>
  runWatchers: Pick<RunWatchers, 'watch'>
}

export interface FollowOptions {
  fromSeq: number
  live: boolean
  gone: AbortSignal
  /** What was read before. */
  opening?: Opening
  /** Takes a list at once while the follower waits for one, if it can: then it is not handed out again. */
  hand?: (list: readonly JournalEntry[]) => boolean
}

/** The beginning of a stream as it was read with the run itself. */
export interface Opening {
  /** From `fromSeq` on; undefined where it has still to be read. */
  page: JournalPage | undefined
  terminal: boolean
  /** How far the run has come since a moment before that read; undefined where that is not known. */
  since: () => Progress | undefined
}

/** How many entries are read at once, at most. */
export const PAGE = 500

/** How many entries wait for a reader who is slow; beyond that they are read from the store when it comes back. */
const MOST_IN_HAND = 2000

/**
 * The journal of a run from `fromSeq` on: what is stored, then, while `live`, what is added, until the run is terminal. Each
 * entry once and in order, from any writer; what is emitted at once is handed on at once, and as the same list to all.
 */
export async function* follow(
  { runs, runWatchers }: FollowDeps,
  runId: string,
  { fromSeq, live, gone, opening, hand = () => false }: FollowOptions,
): AsyncGenerator<readonly JournalEntry[]> {
  let next = fromSeq
  let told: (readonly JournalEntry[])[] = []
  let inHand = 0
  let known = 0
  let terminal = false
  let looked = false
  let waits = false
  let wake = () => {}
  // Before the first read, so that nothing falls between the read and the watching.
  const leave = runWatchers.watch(runId, {
    entries(entries) {
      // The reader began further on, or has them from the store.
      if ((entries.at(-1)?.seq ?? 0) < next) return
      if (waits && told.length === 0 && entries[0]?.seq === next && hand(entries)) {
        next += entries.length
        return
      }
      told.push(entries)
      inHand += entries.length
      if (inHand > MOST_IN_HAND) {
        known = Math.max(known, entries.at(-1)?.seq ?? 0)
        told = []
        inHand = 0
      }
      wake()
    },
    moved(seq, ended) {
      known = Math.max(known, seq)
      terminal ||= ended
      wake()
    },
  })
  const onGone = () => wake()
  gone.addEventListener('abort', onGone, { once: true })
  /** From the store, as far as it goes. */
  async function* stored(): AsyncGenerator<readonly JournalEntry[]> {
    const asked = known
    for (;;) {
      const { entries, isLast } = await runs.page(runId, next, PAGE)
      if (entries.length > 0) yield entries
      if (gone.aborted) return
      next = (entries.at(-1)?.seq ?? next - 1) + 1
      if (isLast) break
    }
    // Whatever was there is sent; what is not there any more is not waited for. What was told of during the read may be missing from it.
    if (known === asked) known = Math.min(known, next - 1)
  }

  try {
    const since = opening?.since()
    if (opening && since) {
      const entries = opening.page?.entries ?? []
      told.unshift(...since.lists)
      known = Math.max(known, since.seq)
      terminal ||= opening.terminal || since.terminal
      looked = opening.page?.isLast === true
      if (entries.length > 0) yield entries
      next = (entries.at(-1)?.seq ?? next - 1) + 1
    } else terminal ||= await isOver(runs, runId)
    for (;;) {
      if (gone.aborted) return
      const lists = told
      told = []
      inHand = 0
      if (!looked || known >= next) yield* stored()
      looked = true
      for (const list of lists) {
        // Only a gap between what was told and what was sent is read from the store.
        if ((from(list, next)[0]?.seq ?? next) > next) yield* stored()
        const unsent = from(list, next)
        if (unsent.length === 0) continue
        if (gone.aborted) return
        yield unsent
        next = (unsent.at(-1)?.seq ?? next) + 1
      }
      if (told.length > 0 || known >= next) continue
      if (!live) return
      if (terminal) {
        // Of a thousand followers the last has what it was told before the first is closed, which is most of the work.
        await new Promise<void>(nextTurn)
        return
      }
      await new Promise<void>(resolve => {
        wake = resolve
        waits = true
        if (told.length > 0 || terminal || gone.aborted) resolve()
      })
      waits = false
    }
  } finally {
    gone.removeEventListener('abort', onGone)
    leave()
  }
}

/** The list itself where all of it is new, so that what is made from it is made once for all who follow. */
function from(list: readonly JournalEntry[], next: number): readonly JournalEntry[] {
  return list[0] !== undefined && list[0].seq >= next ? list : list.filter(({ seq }) => seq >= next)
}

async function isOver(runs: FollowDeps['runs'], runId: string): Promise<boolean> {
  const progress = await runs.progress(runId)
  return progress === undefined || ['succeeded', 'failed', 'cancelled'].includes(progress.status)
}
