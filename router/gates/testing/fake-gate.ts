import { createSlots } from '../../../shared/time/slots.ts'
import { buildGates } from '../build-gates.ts'
import type { Gate } from '../gate.ts'
import type { GateHost } from '../gate-host.ts'
import type { GateConfig } from '../gate-kinds.ts'

/** A gate that does what a test says. */
export function fakeGate(parts: Partial<Gate> & Pick<Gate, 'id' | 'run'>): Gate {
  return {
    kind: 'function',
    onAbstain: 'fail-open',
    timeoutMs: 1000,
    costNano: 0,
    onPrefix: undefined,
    slow: true,
    callsModels: false,
    inline: undefined,
    slots: createSlots(8),
    ...parts,
  }
}

/** What every gate config has beside its kind. */
export const base = {
  id: 'g',
  onAbstain: 'fail-open',
  timeoutMs: 1000,
  cost: 0,
  errorBudget: { window: 50, minRuns: 20, maxError: 0.25, probeAfterS: 60, probes: 3 },
  maxParallel: 8,
} as const

/** The gate of a config that a host can have. */
export function builtGate(config: GateConfig, host: GateHost = {}): Gate {
  const { gates, problems } = buildGates([config], host)
  const gate = gates.get(config.id)
  if (gate === undefined) throw new Error(problems.map(({ message }) => message).join())
  return gate
}

export const never = new AbortController().signal
