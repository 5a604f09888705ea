import type { PeerTurnEvents } from '../../shared/wire/runtime/peer.ts'
import type { Live } from './live-sessions.ts'
import type { Numbered } from './session-log.ts'

/** How far another process has come with what it hears of a turn. */
export interface ReceivedSoFar {
  sessionId: string
  /** The session's last event before the turn. */
  base: number
  /** Its last event of the turn, or `base`. */
  after: number
  /** How many events of the turn it has. */
  kept: number
}

type Said = PeerTurnEvents['events'][number]

const NOTHING: PeerTurnEvents = { covered: true, again: false, events: [] }

/** What was told here of a turn that the other process has not heard: at once where there is something, or as soon as there is. */
export async function replayDeltas(
  live: Pick<Live, 'streamed' | 'watch'>,
  heard: ReceivedSoFar,
  waitMs: number,
): Promise<PeerTurnEvents> {
  const { promise: stirred, resolve: stir } = Promise.withResolvers<void>()
  // Before the first look, so that nothing falls between the look and the watching.
  const leave = live.watch(heard.sessionId, { told: () => stir(), moved: () => undefined, closed: stir })
  const timer = setTimeout(stir, waitMs)
  try {
    const now = look(live, heard)
    if (now !== undefined) return now
    await stirred
    return look(live, heard) ?? NOTHING
  } finally {
    clearTimeout(timer)
    leave()
  }
}

/** Undefined: there is nothing new. */
function look(
  live: Pick<Live, 'streamed'>,
  { sessionId, base, after, kept }: ReceivedSoFar,
): PeerTurnEvents | undefined {
  const told = live.streamed(sessionId)
  if (told === undefined) return undefined
  if (told.from > after) return { covered: false, again: false, events: [] }
  const all = told.events.filter(isOfTurn).filter(({ id }) => id > base)
  const known = all.filter(({ id }) => id <= after).length
  // Of a long turn that has ended the first pieces may be gone; they were heard.
  if (told.from <= base && known !== kept) return { covered: true, again: true, events: all }
  return all.length > known ? { covered: true, again: false, events: all.slice(known) } : undefined
}

const isOfTurn = (event: Numbered): event is Said => event.event !== 'session_stopped'
