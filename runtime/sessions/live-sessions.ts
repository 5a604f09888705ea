import { dropMirror, type Mirror, mirrorOn } from './remote-mirror.ts'
import type { StopReason, TurnEnd } from './session.ts'
import { lastOf, type Numbered, type SessionLog, type StreamedEvents, sizeOf } from './session-log.ts'
import type { SessionState, SessionStore } from './store.ts'
import { LIFE } from './store.ts'
import { type TurnText, turnText } from './turn-text.ts'

export interface Watcher {
  /** It wants the pieces of a turn, and not only its end. */
  pieces?: boolean
  /** Something was told here. */
  told?(event: Numbered): void
  /** How the store has the session now; undefined: it was deleted. */
  moved(state: SessionState | undefined): void
  /** The service stops. */
  closed(): void
}

export interface TurnPlace {
  sessionId: string
  runId: string
  epoch: number
}

export interface LiveOptions {
  store: Pick<SessionStore, 'states'>
  /** How often sessions that are watched here are looked up. */
  pollMs?: number
  /** Text that is kept of sessions without an open turn. */
  mostCharacters?: number
  /** Receives everything that is emitted here, beside all other watchers. */
  heard?: ((event: Numbered) => void) | undefined
  /** A listener wants the deltas of a turn that is not executed here. */
  wanted?: ((session: SessionState) => void) | undefined
}

const KEPT_EVENTS = 1000
/** Two seconds. */
const MOST_LOOKS = 10

export type Live = ReturnType<typeof live>

/**
 * What sessions say while they say it, for those who listen in this process. Of turns that other processes execute one query
 * every 200 ms, for all sessions that are watched, tells how they ended.
 */
export function live({ store, heard, wanted, pollMs = 200, mostCharacters = 16 * 1024 * 1024 }: LiveOptions) {
  const logs = new Map<string, SessionLog>()
  const watchers = new Map<string, Set<Watcher>>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let polling: Promise<void> | undefined
  let closed = false

  function each(sessionId: string, what: (one: Watcher) => void): void {
    for (const one of [...(watchers.get(sessionId) ?? [])]) what(one)
  }

  function tell(sessionId: string, log: SessionLog, event: Numbered): void {
    heard?.(event)
    log.events.push(event)
    log.characters += sizeOf(event)
    // A late reader gets the turn in progress whole, so only what came before it can be dropped.
    while (log.events.length > KEPT_EVENTS) {
      const first = log.events[0]!
      if (log.speaking && 'turnId' in first.data && first.data.turnId === log.speaking.runId) break
      if (log.mirrored && first.id > log.mirrored.base) break
      log.events.shift()
      log.characters -= sizeOf(first)
      log.from = first.id
    }
    each(sessionId, one => one.told?.(event))
  }

  /** A process that lives for long must not keep every conversation it ever heard. */
  function forgetOld(): void {
    let characters = 0
    for (const [id, log] of [...logs].toReversed()) {
      characters += log.characters + 1000
      if (characters > mostCharacters && !log.speaking && !watchers.has(id)) logs.delete(id)
    }
  }

  /** Last in the order of the map: the newest is forgotten last. */
  function keep(sessionId: string, log: SessionLog): void {
    logs.delete(sessionId)
    logs.set(sessionId, log)
    forgetOld()
  }

  function takeBack(log: SessionLog, runId: string): void {
    const kept = log.events.filter(({ event, data }) => event !== 'message_delta' || data.turnId !== runId)
    log.characters -= log.events.reduce((sum, event) => sum + sizeOf(event), 0)
    log.characters += kept.reduce((sum, event) => sum + sizeOf(event), 0)
    log.events = kept
  }

  async function poll(ids: readonly string[]): Promise<void> {
    const states = await store.states(ids)
    for (const [id, state] of states) {
      const log = logs.get(id)
      const { speaking, ended = 0 } = log ?? {}
      // It ended elsewhere: what was told here of it is void.
      if (log && speaking && !speaking.ending && state && state.turnId !== speaking.runId && state.lastEvent > ended) {
        takeBack(log, speaking.runId)
        delete log.speaking
      }
      if (state === undefined) logs.delete(id)
      if (log?.mirrored && state && state.lastEvent > lastOf(log)) {
        // Who has heard pieces of it hears its end after the last of them, where that comes.
        const isHeard = lastOf(log) > log.mirrored.base
        if (isHeard && state.status !== 'stopped' && ++log.mirrored.looks <= MOST_LOOKS) continue
        dropMirror(log)
      }
      const unheard = state?.turnId !== undefined && log?.speaking === undefined && log?.mirrored === undefined
      if (unheard && [...(watchers.get(id) ?? [])].some(({ pieces }) => pieces)) wanted?.(state)
      each(id, one => one.moved(state))
    }
  }

  function schedule(): void {
    if (timer !== undefined || watchers.size === 0 || closed) return
    timer = setTimeout(() => {
      // Asked again at the next look.
      polling = poll([...watchers.keys()])
        .catch(() => undefined)
        .finally(() => {
          timer = undefined
          polling = undefined
          schedule()
        })
    }, pollMs)
  }

  return {
    watch(sessionId: string, watcher: Watcher): () => void {
      const all = watchers.get(sessionId) ?? new Set()
      all.add(watcher)
      watchers.set(sessionId, all)
      if (closed) watcher.closed()
      schedule()
      return () => {
        all.delete(watcher)
        if (all.size > 0 || watchers.get(sessionId) !== all) return
        watchers.delete(sessionId)
        if (watchers.size > 0 || polling) return
        clearTimeout(timer)
        timer = undefined
      }
    },

    /** Looks a session up now, for those who watch it. */
    async look(sessionId: string): Promise<void> {
      await poll([sessionId])
    },

    streamed: (sessionId: string): StreamedEvents | undefined => logs.get(sessionId),

    /** Whether that turn is executed here, or was. */
    speaks(sessionId: string, turnId: string): boolean {
      const log = logs.get(sessionId)
      const isOf = ({ data }: Numbered) => 'turnId' in data && data.turnId === turnId
      return log?.speaking?.runId === turnId || (log?.mirrored === undefined && log?.events.some(isOf) === true)
    },

    /** The voice of a turn in the hands of this process; `base` is the session's last event before the turn. */
    voice({ sessionId, runId, epoch }: TurnPlace, base: number, lastOnly: boolean): TurnText {
      let log = logs.get(sessionId)
      // Something was said elsewhere since.
      if (log && log.ended !== base) log = undefined
      const again = log?.speaking
      if (again?.runId === runId && again.epoch === epoch - 1) {
        again.epoch = epoch
        again.ending = false
        again.voice.resume()
        return again.voice
      }
      const fresh: SessionLog = log ?? { from: base, ended: base, events: [], characters: 0 }
      takeBack(fresh, runId)
      const voice = turnText({
        lastOnly,
        anew: epoch > 1,
        tell(seq, delta) {
          // A voice that was replaced says nothing any more.
          if (fresh.speaking !== speaking) return
          const data = { sessionId, turnId: runId, seq, delta }
          tell(sessionId, fresh, { id: speaking.nextId++, event: 'message_delta', data })
        },
        takeBack: () => takeBack(fresh, runId),
      })
      const speaking = { runId, epoch, nextId: base + (epoch - 1) * LIFE + 1, voice, ending: false }
      fresh.speaking = speaking
      delete fresh.mirrored
      keep(sessionId, fresh)
      return voice
    },

    /** The voice that a turn has here, and the id of its end; without one the id follows from the turn's place. */
    endOf({ sessionId, runId, epoch }: TurnPlace): { voice: TurnText; eventId: () => number } | undefined {
      const speaking = logs.get(sessionId)?.speaking
      if (speaking?.runId !== runId) return undefined
      speaking.ending = true
      return {
        voice: speaking.voice,
        eventId: () => speaking.nextId + (epoch - speaking.epoch) * LIFE,
      }
    },

    /** What was told of a turn's end did not come: what is known of it is looked up. */
    forget({ sessionId, runId }: TurnPlace): void {
      const log = logs.get(sessionId)
      if (log?.speaking?.runId === runId) log.speaking.ending = false
    },

    /** Undefined: the turn is emitted here already. `base` is the session's last event before the turn. */
    mirror(sessionId: string, base: number): Mirror | undefined {
      const known = logs.get(sessionId)
      if (known?.speaking || known?.mirrored) return undefined
      const log: SessionLog = known?.ended === base ? known : { from: base, ended: base, events: [], characters: 0 }
      keep(sessionId, log)
      return mirrorOn(log, base, {
        isKept: () => logs.get(sessionId) === log,
        isWatched: () => watchers.has(sessionId) && !closed,
        tell: event => tell(sessionId, log, event),
      })
    },

    /** A turn has ended here, for good. */
    ended(sessionId: string, id: number, end: TurnEnd): void {
      const log = logs.get(sessionId)
      const event: Numbered = { id, ...end }
      if (log?.speaking?.runId !== end.data.turnId) {
        each(sessionId, one => one.told?.(event))
        return
      }
      delete log.speaking
      log.ended = id
      tell(sessionId, log, event)
    },

    close(): void {
      closed = true
      clearTimeout(timer)
      for (const id of [...watchers.keys()]) each(id, one => one.closed())
    },
  }
}

/** What stands at the end of a stopped session's stream. */
export function stoppedEvent(
  sessionId: string,
  state: { lastEvent: number; stoppedMs: number; stopReason: StopReason | 'deleted' },
): Numbered {
  const at = new Date(state.stoppedMs).toISOString()
  return { id: state.lastEvent, event: 'session_stopped', data: { sessionId, at, reason: state.stopReason } }
}
