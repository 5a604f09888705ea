import type { Fire, Schedule } from '../../shared/wire/runtime/schedule.ts'
import type { Windows } from './windows.ts'

/** Why a window did not start a run when its time came. */
export type FireReason =
  | 'overlap' // the run before it had not ended
  | 'queue_full' // the run before it had not ended, and another window was waiting for that already
  | 'missed' // no process was running at its time, and the catch-up policy leaves it
  | 'caught_up' // started late, by the catch-up policy
  | 'paused' // it waited for the run before it when the schedule was switched off
  | 'agent_not_found'
  | 'budget_exceeded'

export interface WindowFate {
  windowMs: number
  outcome: Fire['outcome']
  reason?: FireReason
}

export interface WindowFates {
  /** A window that waited and whose turn has come. */
  released: number | undefined
  windows: WindowFate[]
  /** The window that waits for the run before it from now on. */
  pendingMs: number | null
}

export interface ScheduleState {
  policy: Pick<Schedule, 'overlap' | 'catchUp' | 'catchUpLimit'>
  /** A run of this schedule has not ended. */
  isRunning: boolean
  pendingMs: number | null
}

/** Missed windows that are looked at: enough for every policy. */
export const MOST_MISSED = 100

/** What becomes of each window (docs/spec/runtime.md §9). Windows are taken oldest first, so that each sees what the ones before it started. */
export function decideWindows(
  { policy, isRunning, pendingMs }: ScheduleState,
  { missed, onTime }: Omit<Windows, 'next'>,
): WindowFates {
  let busy = isRunning
  let pending = pendingMs
  let released: number | undefined
  if (pending !== null && !busy) {
    released = pending
    pending = null
    busy = true
  }
  const kept = keptOf(policy)
  const late = missed.length - kept
  const windows = [...missed, ...onTime].map((windowMs, at): WindowFate => {
    if (at < late) return { windowMs, outcome: 'skipped', reason: 'missed' }
    if (!busy || policy.overlap === 'allow') {
      busy = true
      return { windowMs, outcome: 'started', ...(at < missed.length && { reason: 'caught_up' }) }
    }
    if (policy.overlap === 'skip') return { windowMs, outcome: 'skipped', reason: 'overlap' }
    if (pending !== null) return { windowMs, outcome: 'skipped', reason: 'queue_full' }
    pending = windowMs
    return { windowMs, outcome: 'queued' }
  })
  return { released, windows, pendingMs: pending }
}

function keptOf({ catchUp, catchUpLimit }: ScheduleState['policy']): number {
  switch (catchUp) {
    case 'none':
      return 0
    case 'one':
      return 1
    case 'all':
      return catchUpLimit
  }
}
