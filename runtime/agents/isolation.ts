import {
  type Backend,
  type Isolation,
  type IsolationItem,
  isolationTable,
  isolationValues,
} from '../../shared/wire/runtime/isolation.ts'

/** A node and the backends that passed its self-test. */
export interface NodeBackends {
  id: string
  backends: readonly Backend[]
}

/** Whether a node can honour a declared isolation. Rank does not count, only the listed backends do. */
export function satisfies(value: Isolation, backends: readonly Backend[]): boolean {
  const { satisfiedBy } = isolationTable[value]
  return satisfiedBy.some(needed => needed === 'any' || backends.includes(needed))
}

/** Every isolation value with the nodes that can honour it. */
export function isolationItems(nodes: readonly NodeBackends[]): IsolationItem[] {
  return isolationValues.map(value => ({
    value,
    rank: isolationTable[value].rank,
    satisfiedBy: [...isolationTable[value].satisfiedBy],
    availableOn: nodes.filter(({ backends }) => satisfies(value, backends)).map(({ id }) => id),
  }))
}
