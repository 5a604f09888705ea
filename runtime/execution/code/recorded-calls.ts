import { RunFailure } from '../failure.ts'
import type { JournalEntry } from '../journal/event.ts'

/** What a program asked for at one place in the order of its calls. */
export interface CodeCall {
  name: string
  inputHash: string
}

/** The calls of a program as its journal tells them, by their place from 1 on. Places whose call made no step are missing. */
export function recordedCalls(events: Iterable<JournalEntry>): Map<number, CodeCall> {
  const calls = new Map<number, CodeCall>()
  for (const { kind, meta } of events) {
    const { call, callName, inputHash } = meta
    if (kind !== 'step_started' || typeof call !== 'number' || calls.has(call)) continue
    calls.set(call, { name: String(callName), inputHash: String(inputHash) })
  }
  return calls
}

/** Ends the run when a program that began again does not ask for what it asked for before (docs/spec/runtime.md §3). */
export function checkReplay(recorded: ReadonlyMap<number, CodeCall>, place: number, now: CodeCall): void {
  const before = recorded.get(place)
  if (before === undefined || (before.name === now.name && before.inputHash === now.inputHash)) return
  const what = before.name === now.name ? `${now.name} with another input` : `${now.name}, and was ${before.name}`
  throw new RunFailure(
    'nondeterministic_replay',
    `call ${place} of the program is ${what}: what changes from one execution to the next belongs into a step`,
  )
}

/** A program that ends earlier than it did before is another program. */
export function checkAllReplayed(recorded: ReadonlyMap<number, CodeCall>, made: number): void {
  const missing = [...recorded.keys()].find(place => place > made)
  if (missing === undefined) return
  const { name } = recorded.get(missing)!
  throw new RunFailure(
    'nondeterministic_replay',
    `the program ended after ${made} calls, and before it made a call ${missing}, ${name}`,
  )
}
