import type { SseEvent } from './sse-write.ts'

/** So that a page is up to date within 300 ms of the commit that it shows. */
const POLL_MS = 150

export type ChangeFeed = ReturnType<typeof changeFeed>

export interface Marks {
  /** Another text for a tenant when something that its pages show is another than before. */
  marks: (tenants: readonly string[]) => Promise<ReadonlyMap<string, string>>
}

/**
 * Tells open pages that something in their tenant has changed. However many pages are open, one statement asks for all of them, some
 * times a second; none while no page is open.
 */
export function changeFeed(store: Marks) {
  const rooms = new Map<string, { mark: string | undefined; told: Set<() => void> }>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let over = false

  function schedule(): void {
    if (timer !== undefined || rooms.size === 0) return
    timer = setTimeout(async () => {
      // A store that does not answer is reported by the next page that asks it.
      await poll().catch(() => undefined)
      timer = undefined
      schedule()
    }, POLL_MS)
  }

  async function poll(): Promise<void> {
    const marks = await store.marks([...rooms.keys()])
    for (const [tenantId, room] of rooms) {
      const mark = marks.get(tenantId)
      // The first look of a room counts as a change: what came between the page and this look would be missed.
      if (mark !== room.mark) for (const tell of room.told) tell()
      room.mark = mark
    }
  }

  function watch(tenantId: string, tell: () => void): () => void {
    const room = rooms.get(tenantId) ?? { mark: undefined, told: new Set() }
    rooms.set(tenantId, room)
    room.told.add(tell)
    schedule()
    return () => {
      room.told.delete(tell)
      if (room.told.size > 0) return
      if (rooms.get(tenantId) === room) rooms.delete(tenantId)
      if (rooms.size > 0) return
      clearTimeout(timer)
      timer = undefined
    }
  }

  return {
    /** One event now, since something may have changed before the line was there, and one after each change. */
    async *follow(tenantId: string, gone: AbortSignal): AsyncGenerator<SseEvent> {
      let wake = () => {}
      let hasChanged = true
      const stir = () => {
        hasChanged = true
        wake()
      }
      const leave = watch(tenantId, stir)
      gone.addEventListener('abort', stir, { once: true })
      try {
        while (!gone.aborted && !over) {
          if (hasChanged) {
            hasChanged = false
            yield { event: 'changed', data: {} }
            continue
          }
          await new Promise<void>(resolve => {
            wake = resolve
            if (hasChanged || gone.aborted || over) resolve()
          })
        }
      } finally {
        gone.removeEventListener('abort', stir)
        leave()
      }
    },
    /** The service stops: pages come back to the next one. */
    close(): void {
      over = true
      for (const { told } of rooms.values()) for (const tell of told) tell()
    },
    /** Pages that listen now, by tenant. */
    get watched() {
      return rooms.size
    },
  }
}
