import { lastOf, type Numbered, type SessionLog, sizeOf } from './session-log.ts'

/** What is heard here of a turn that another process executes. */
export interface Mirror {
  /** No turn is executed here, and there is a listener. */
  wanted(): boolean
  /** The last event of the turn that was heard, and how many. */
  heard(): { after: number; kept: number }
  /** Told here as it was told there; true: the turn has ended. */
  take(said: { again: boolean; events: readonly Numbered[] }): boolean
  /** No more comes: what was heard of a turn without its end is void. */
  end(): void
}

export interface MirrorOptions {
  /** The log is still that of its session. */
  isKept(): boolean
  isWatched(): boolean
  tell(event: Numbered): void
}

/** Hears a turn into a log; one at a time. */
export function mirrorOn(log: SessionLog, base: number, { isKept, isWatched, tell }: MirrorOptions): Mirror {
  const mine = { base, looks: 0 }
  log.mirrored = mine
  const isMine = () => log.mirrored === mine && isKept()
  return {
    wanted: () => isMine() && isWatched(),
    heard: () => ({ after: Math.max(base, lastOf(log)), kept: log.events.filter(({ id }) => id > base).length }),
    take({ again, events }) {
      if (!isMine()) return true
      if (again) {
        dropMirror(log)
        log.mirrored = mine
      }
      for (const event of events) {
        const isEnd = event.event !== 'message_delta'
        if (isEnd) {
          delete log.mirrored
          log.ended = event.id
        }
        tell(event)
        if (isEnd) return true
      }
      return false
    },
    end() {
      if (isMine()) dropMirror(log)
    },
  }
}

/** What was heard of a turn without its end is void. */
export function dropMirror(log: SessionLog): void {
  const { base } = log.mirrored ?? { base: lastOf(log) }
  delete log.mirrored
  log.events = log.events.filter(({ id }) => id <= base)
  log.characters = log.events.reduce((sum, event) => sum + sizeOf(event), 0)
}
