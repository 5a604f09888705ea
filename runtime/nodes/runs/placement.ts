import type { Backend, Isolation } from '../../../shared/wire/runtime/isolation.ts'
import { isolationTable } from '../../../shared/wire/runtime/isolation.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import { satisfies } from '../../agents/isolation.ts'
import { EMBEDDED_POOL } from '../../agents/pool-label.ts'

const DEFAULT_POOL = 'default'

export type Placement =
  | { on: 'here' }
  | { on: 'pool'; pool: string }
  /** No known node can execute it. */
  | { on: 'nowhere'; pool: string; message: string }

export interface PlacementFacts {
  manifest: Pick<Manifest, 'isolation'>
  /** What the agent's label says. */
  wanted: string | undefined
  embedded: { on: boolean; backends: readonly Backend[] }
  /** Every enrolled node of the tenant, connected or not. */
  nodes: readonly { pool: string; backends: readonly Backend[]; connected: boolean }[]
}

/**
 * Where a run goes (docs/spec/runtime.md §3, §14): to the pool that its agent names, else to the embedded node where that is on and
 * can honour the isolation, else to a pool that has a node which can, one that is connected before one that is away. Nothing is
 * ever run weaker than declared.
 */
export function place({ manifest, wanted, embedded, nodes }: PlacementFacts): Placement {
  const { isolation } = manifest
  if (wanted === EMBEDDED_POOL || (wanted === undefined && embedded.on && satisfies(isolation, embedded.backends))) {
    if (embedded.on) return { on: 'here' }
    return { on: 'nowhere', pool: EMBEDDED_POOL, message: 'the embedded node is switched off (PLATFORM_EMBEDDED_NODE)' }
  }
  const within = nodes.filter(node => wanted === undefined || node.pool === wanted)
  const able = within.filter(node => satisfies(isolation, node.backends))
  if (able.length === 0) {
    const pool = wanted ?? DEFAULT_POOL
    return { on: 'nowhere', pool, message: lacking(isolation, within, wanted) }
  }
  const best = [...able].sort((a, b) => rank(b) - rank(a))[0]!
  return { on: 'pool', pool: best.pool }
}

/**
 * The same where it follows from the nodes that are connected here, which takes no read; undefined: the others have to be looked at. `here`: those of a
 * pool.
 */
export function placeNear(
  { manifest: { isolation }, wanted, embedded }: Omit<PlacementFacts, 'nodes'>,
  here: (pool: string) => readonly { backends: readonly Backend[] }[],
): Placement | undefined {
  if (wanted === EMBEDDED_POOL || (wanted === undefined && embedded.on && satisfies(isolation, embedded.backends))) {
    return place({ manifest: { isolation }, wanted, embedded, nodes: [] })
  }
  const pool = wanted ?? DEFAULT_POOL
  return here(pool).some(({ backends }) => satisfies(isolation, backends)) ? { on: 'pool', pool } : undefined
}

function rank({ connected, pool }: { connected: boolean; pool: string }): number {
  return (connected ? 2 : 0) + (pool === DEFAULT_POOL ? 1 : 0)
}

/** What is missing and what there is, in one sentence. */
function lacking(
  isolation: Isolation,
  nodes: readonly { backends: readonly Backend[] }[],
  pool: string | undefined,
): string {
  const where = pool === undefined ? 'no enrolled node' : `no enrolled node of pool ${pool}`
  const needed = isolationTable[isolation].satisfiedBy
  const needs = needed.some(one => one === 'any') ? 'any node' : needed.join(' or ')
  const offered = [...new Set(nodes.flatMap(({ backends }) => backends))].sort()
  const there =
    nodes.length === 0 ? 'none is enrolled' : `available: ${offered.length === 0 ? 'none' : offered.join(', ')}`
  return `${where} offers isolation ${isolation} (it needs ${needs}; ${there})`
}
