import type { Gate } from '../gate.ts'
import { createSlots } from '../slots.ts'

/** A gate that does what a test says. */
export function fakeGate(parts: Partial<Gate> & Pick<Gate, 'id' | 'run'>): Gate {
  return {
    kind: 'function',
    onAbstain: 'fail-open',
    timeoutMs: 1000,
    costNano: 0,
    onPrefix: undefined,
    callsModels: false,
    inline: undefined,
    slots: createSlots(8),
    ...parts,
  }
}

/** What every gate config has beside its kind. */
export const base = { id: 'g', onAbstain: 'fail-open', timeoutMs: 1000, cost: 0, maxParallel: 8 } as const

export const never = new AbortController().signal
