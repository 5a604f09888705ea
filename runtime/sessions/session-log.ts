import type { SessionEvent } from '../../shared/wire/runtime/session.ts'
import type { TurnText } from './turn-text.ts'

/** One event of a session's stream. */
export type Numbered = { id: number } & SessionEvent

/** What this process has streamed of a session: every event after `from`, and none that was taken back. */
export interface StreamedEvents {
  from: number
  events: Numbered[]
}

/** What a process keeps of what a session says. */
export interface SessionLog extends StreamedEvents {
  /** The id of the last end of a turn here. */
  ended: number
  /** Another process speaks, and is heard here: of the turn after that event, whose end has stood in the store for so many looks. */
  mirrored?: { base: number; looks: number }
  speaking?: { runId: string; epoch: number; nextId: number; voice: TurnText; ending: boolean }
  characters: number
}

/** The id of the last event that is kept, or of the one before the first. */
export const lastOf = (log: StreamedEvents): number => log.events.at(-1)?.id ?? log.from

export function sizeOf({ data }: Numbered): number {
  return 200 + ('delta' in data ? data.delta.length : 'text' in data ? data.text.length : 0)
}
