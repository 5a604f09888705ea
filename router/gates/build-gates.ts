import { createSlots } from '../../shared/time/slots.ts'
import type { GateRefusal } from './define-gate.ts'
import type { Gate, GateJudge } from './gate.ts'
import type { GateHost } from './gate-host.ts'
import { type GateConfig, type GateConfigs, type GateKind, gateKinds } from './gate-kinds.ts'

interface GateProblem extends GateRefusal {
  readonly gateId: string
}

export interface BuiltGates {
  readonly gates: ReadonlyMap<string, Gate>
  /** A gate with a problem is not among the gates; a config that names it must not be served. */
  readonly problems: readonly GateProblem[]
}

/** Makes the gates of a config. */
export function buildGates(configs: readonly GateConfig[], host: GateHost): BuiltGates {
  const gates = new Map<string, Gate>()
  const problems: GateProblem[] = []
  for (const config of configs) {
    const { id } = config
    const built = gateOf(config.kind, config, host)
    if ('run' in built) gates.set(id, built)
    else problems.push({ gateId: id, code: built.code, message: `gate "${id}": ${built.message}` })
  }
  return { gates, problems }
}

function gateOf<K extends GateKind>(kind: K, config: GateConfigs[K], host: GateHost): Gate | GateRefusal {
  const definition = gateKinds[kind]
  const built = definition.build(config, host)
  if ('code' in built) return built
  const { id, onAbstain, timeoutMs, cost, maxParallel } = config
  return {
    id,
    kind,
    onAbstain,
    timeoutMs,
    costNano: cost,
    // A fail-closed gate would have to take back what has gone out.
    onPrefix: onAbstain === 'fail-closed' ? undefined : definition.onPrefix(config),
    slow: definition.slow,
    callsModels: definition.callsModels,
    slots: createSlots(maxParallel),
    ...('judge' in built ? inline(built.judge) : { inline: undefined, run: built.run }),
  }
}

const inline = (judge: GateJudge): Pick<Gate, 'run' | 'inline'> => ({ inline: judge, run: async input => judge(input) })
