import { connectorRef } from '../../shared/wire/runtime/catalog.ts'
import type { Backend } from '../../shared/wire/runtime/isolation.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import { needsSandbox } from '../execution/sandbox/placement.ts'
import { satisfies } from './isolation.ts'

export interface Surroundings {
  /** Ids of the connectors that the tenant has installed. */
  connectors: ReadonlySet<string>
  /** Names of the tenant's agents, the one that is being saved among them. */
  agents: ReadonlySet<string>
  nodes: readonly { backends: readonly Backend[] }[]
  /** The pool that its texts should have been sealed to, and were not. */
  unsealedFor: string | undefined
}

/** What the manifest names and the tenant does not have yet. Each may come before the first run, so none is an error. */
export function warningsOf(manifest: Manifest, { connectors, agents, nodes, unsealedFor }: Surroundings): string[] {
  const named = manifest.connectors.flatMap(entry => connectorRef(entry)?.connectorId ?? [])
  const missing = [...new Set(named)].filter(id => !connectors.has(id))
  const away = manifest.subAgents.map(({ name }) => name).filter(name => !agents.has(name))
  const { isolation } = manifest
  return [
    ...missing.map(id => `connector ${id} is not installed`),
    ...away.map(name => `sub-agent ${name} does not exist`),
    ...(nodes.some(({ backends }) => satisfies(isolation, backends))
      ? []
      : [`no node offers isolation ${isolation} yet: runs end isolation_unavailable unless one does when they start`]),
    ...(isolation === 'shared' &&
    needsSandbox(manifest) &&
    !nodes.some(({ backends }) => satisfies('microvm', backends))
      ? [
          'what it runs in a sandbox needs a microVM under isolation shared, and no node offers one: its runs end isolation_unavailable',
        ]
      : []),
    ...(unsealedFor === undefined
      ? []
      : [
          `pool ${unsealedFor} had no enrolled node, so its prompt and files are readable here: publish it again when it has`,
        ]),
  ]
}
