import type { Hub } from '../execution/hub.ts'
import type { JournalEntry } from '../execution/journal/event.ts'
import type { RunStore } from './store.ts'

export interface FollowDeps {
  runs: Pick<RunStore, 'events' | 'progress'>
  hub: Pick<Hub, 'watch'>
}

const PAGE = 500

/**
 * The journal of a run from `fromSeq` on: what is stored, then, while `live`, what is added, until the run is terminal. Each
 * entry once and in order, whoever writes them.
 */
export async function* follow(
  { runs, hub }: FollowDeps,
  runId: string,
  { fromSeq, live, gone }: { fromSeq: number; live: boolean; gone: AbortSignal },
): AsyncGenerator<JournalEntry> {
  let next = fromSeq
  let fresh: JournalEntry[] = []
  let known = 0
  let terminal = false
  let looked = false
  let wake = () => {}
  // Before the first read, so that nothing falls between the read and the watching.
  const leave = hub.watch(runId, {
    entries(entries) {
      fresh.push(...entries)
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
  try {
    terminal = await isOver(runs, runId)
    for (;;) {
      // Only a gap between what was told and what was sent is read from the store.
      const inHand = fresh
      fresh = []
      if (!looked || known >= next || (inHand[0] !== undefined && inHand[0].seq > next)) {
        looked = true
        for (;;) {
          const page = await runs.events(runId, next, PAGE)
          for (const entry of page) {
            if (gone.aborted) return
            yield entry
            next = entry.seq + 1
          }
          if (page.length < PAGE) break
        }
        // Whatever was there is sent; what is not there any more is not waited for.
        known = Math.min(known, next - 1)
      }
      for (const entry of inHand) {
        if (entry.seq < next) continue
        if (gone.aborted) return
        yield entry
        next = entry.seq + 1
      }
      if (gone.aborted) return
      if (fresh.length > 0) continue
      if (known >= next) continue
      if (terminal || !live) return
      await new Promise<void>(resolve => {
        wake = resolve
        if (fresh.length > 0 || terminal || gone.aborted) resolve()
      })
      wake = () => {}
    }
  } finally {
    gone.removeEventListener('abort', onGone)
    leave()
  }
}

async function isOver(runs: FollowDeps['runs'], runId: string): Promise<boolean> {
  const progress = await runs.progress(runId)
  return progress === undefined || ['succeeded', 'failed', 'cancelled'].includes(progress.status)
}
