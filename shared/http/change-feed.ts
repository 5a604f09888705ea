import type { SseEvent } from './sse-write.ts'

/** So that a page is up to date within 300 ms of the commit that it shows. */
const POLL_MS = 120
/** Of a store that is slow less is asked: this takes a tenth of the time at most. One slow answer after a quick one is no slow store. */
const REST = 10
/** So many pages look at once when something has changed; where more are open they take turns. */
const AT_ONCE = 40
/** All together look that often at most, however many are open and whatever changes. */
const LOOKS_PER_SECOND = 80
/** From here on one drawing of a page serves all who look. */
const CROWD = 10

export type ChangeFeed = ReturnType<typeof changeFeed>

export interface Marks {
  /** Another text for a tenant when something that its pages show is another than before. */
  marks: (tenants: readonly string[]) => Promise<ReadonlyMap<string, string>>
}

export interface FeedOptions {
  monotonic?: () => number
  /** Pages with figures that are counted for some time, or by the clock, look again so long after the last change, and then that often. */
  again?: { afterMs: number; everyMs: number }
}

interface Room {
  mark: string | undefined
  againAtMs: number
  pages: Set<() => void>
}

/**
 * Tells open pages that something in their tenant has changed. However many pages are open, one statement asks for all of them, some
 * times a second; none while no page is open.
 */
export function changeFeed(store: Marks, { monotonic = () => performance.now(), again }: FeedOptions = {}) {
  const rooms = new Map<string, Room>()
  /** Pages that look in this order: one that waits keeps its turn, however often something changes. */
  const queue = new Set<() => void>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let over = false
  let tookMs = 0
  let beforeMs = 0
  let turns = { count: AT_ONCE, atMs: monotonic() }

  function schedule(): void {
    if (timer !== undefined || rooms.size === 0) return
    const own = setTimeout(
      async () => {
        const beganMs = monotonic()
        // A store that does not answer is reported by the next page that asks it.
        await poll(beganMs).catch(() => undefined)
        beforeMs = tookMs
        tookMs = monotonic() - beganMs
        tell(beganMs)
        // While it asked, all pages may have closed and others opened, which began anew.
        if (timer !== own) return
        timer = undefined
        schedule()
      },
      Math.max(POLL_MS, REST * Math.min(tookMs, beforeMs)),
    )
    timer = own
  }

  async function poll(nowMs: number): Promise<void> {
    const marks = await store.marks([...rooms.keys()])
    for (const [tenantId, room] of rooms) {
      const mark = marks.get(tenantId)
      const hasChanged = mark !== room.mark
      if (!hasChanged && nowMs < room.againAtMs) continue
      room.mark = mark
      room.againAtMs =
        again === undefined ? Number.POSITIVE_INFINITY : nowMs + (hasChanged ? again.afterMs : again.everyMs)
      for (const page of room.pages) queue.add(page)
    }
  }

  function tell(nowMs: number): void {
    const earned = ((nowMs - turns.atMs) * LOOKS_PER_SECOND) / 1000
    turns = { count: Math.min(AT_ONCE, turns.count + earned), atMs: nowMs }
    for (const page of queue) {
      if (turns.count < 1) return
      turns.count--
      queue.delete(page)
      page()
    }
  }

  function watch(tenantId: string, page: () => void): () => void {
    const room = rooms.get(tenantId) ?? { mark: undefined, againAtMs: Number.POSITIVE_INFINITY, pages: new Set() }
    rooms.set(tenantId, room)
    room.pages.add(page)
    // What came between the page and this line would be missed.
    queue.add(page)
    schedule()
    return () => {
      room.pages.delete(page)
      queue.delete(page)
      if (room.pages.size > 0) return
      if (rooms.get(tenantId) === room) rooms.delete(tenantId)
      if (rooms.size > 0) return
      clearTimeout(timer)
      timer = undefined
    }
  }

  return {
    /** One event as soon as the line is there, and one after each change, when it is the turn of this page. */
    follow: (tenantId: string, gone: AbortSignal) =>
      events(
        page => watch(tenantId, page),
        gone,
        () => over,
      ),
    /** The service stops: pages come back to the next one. */
    close(): void {
      over = true
      for (const { pages } of rooms.values()) for (const page of pages) page()
    },
    /** Which state of a tenant the open pages know of; undefined where none is open. */
    mark: (tenantId: string): string | undefined => rooms.get(tenantId)?.mark,
    /** Whether so many are open that one drawing serves them all. */
    isCrowded: (tenantId: string): boolean => (rooms.get(tenantId)?.pages.size ?? 0) > CROWD,
    /** Pages that listen now, by tenant. */
    get watched() {
      return rooms.size
    },
  }
}

/** An event for each time that the page shall look, until it is gone or the service stops. */
async function* events(
  watch: (page: () => void) => () => void,
  gone: AbortSignal,
  isOver: () => boolean,
): AsyncGenerator<SseEvent> {
  let wake = () => {}
  let isTold = false
  const stir = () => {
    isTold = true
    wake()
  }
  const leave = watch(stir)
  gone.addEventListener('abort', stir, { once: true })
  try {
    while (!gone.aborted && !isOver()) {
      if (isTold) {
        isTold = false
        yield { event: 'changed', data: {} }
        continue
      }
      await new Promise<void>(resolve => {
        wake = resolve
        if (isTold || gone.aborted || isOver()) resolve()
      })
    }
  } finally {
    gone.removeEventListener('abort', stir)
    leave()
  }
}
