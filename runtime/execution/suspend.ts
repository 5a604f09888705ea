import type { SuspendedUntil } from './failure.ts'
import type { Transition } from './journal/commit.ts'

/**
 * Where a run goes when all it can do now is wait. Calls of one turn may wait for different things: it is `waiting` when a
 * human is among them, and due when the first of the others may have come.
 */
export function suspendUntil(all: readonly SuspendedUntil[]): Transition {
  const due: number[] = []
  const children: string[] = []
  const signals: string[] = []
  const approvals: string[] = []
  let timerMs: number | undefined
  for (const until of all) {
    switch (until.on) {
      case 'drain':
        due.push(0)
        break
      case 'approval':
        due.push(until.expiresMs)
        approvals.push(until.id)
        break
      case 'timer':
        due.push(until.atMs)
        timerMs = Math.min(timerMs ?? until.atMs, until.atMs)
        break
      case 'signal':
        signals.push(until.name)
        if (until.atMs !== undefined) due.push(until.atMs)
        break
      case 'subagent':
        children.push(...until.children)
        break
    }
  }
  const reason =
    timerMs !== undefined ? 'timer' : signals.length > 0 ? 'signal' : children.length > 0 ? 'subagent' : undefined
  return {
    status: all.some(until => until.on === 'approval') ? 'waiting' : 'running',
    dueMs: due.length === 0 ? null : Math.min(...due),
    ...(reason && { parked: { reason, ...(timerMs !== undefined && { untilMs: timerMs }) } }),
    ...(children.length + signals.length + approvals.length > 0 && { awaited: { children, signals, approvals } }),
  }
}
