import type { Isolation } from '../../../shared/wire/runtime/isolation.ts'
import { acceptsIsolation, type NodeLink, type NodeLinks } from '../registry/node-link.ts'

/** A node takes more than it works on at once, so that it never waits for the tunnel; the rest waits in its own queue. */
const QUEUE_FACTOR = 4

/** Where a new run may go. */
export interface RunAim {
  tenantId: string
  pool: string
  pinned: string | undefined
  isolation: Isolation
}

export type NodeLoads = ReturnType<typeof nodeLoads>

/**
 * How much the connected nodes have to do and for which of them nothing waits, as far as this process knows: what was read last, with what it has
 * given them and heard of them since. A node that seems full or has others waiting is left to the dispatcher, which reads.
 */
export function nodeLoads(links: Pick<NodeLinks, 'all' | 'of'>, now: () => Date) {
  let loads = new Map<string, number>()
  const idle = new WeakSet<NodeLink>()
  const loadOf = (nodeId: string) => loads.get(nodeId) ?? 0
  const room = ({ nodeId, slots }: NodeLink) => Math.max(1, slots) * QUEUE_FACTOR - loadOf(nodeId)

  return {
    room,
    /** As the store has it. */
    read(found: ReadonlyMap<string, number>): void {
      loads = new Map(found)
    },
    given(nodeId: string, runs: number): void {
      loads.set(nodeId, loadOf(nodeId) + runs)
    },
    /** It has so many fewer. */
    ended(nodeId: string, runs: number): void {
      loads.set(nodeId, Math.max(0, loadOf(nodeId) - runs))
    },
    /** Nodes with room, the least busy first. */
    withRoom: (): NodeLink[] =>
      links
        .all()
        .filter(link => room(link) > 0)
        .sort((a, b) => loadOf(a.nodeId) / (a.slots || 1) - loadOf(b.nodeId) / (b.slots || 1)),
    /** Nothing waits that this node could take. */
    idle: (link: NodeLink): void => void idle.add(link),
    /** A run waits for a node of that pool. */
    waiting(tenantId: string, pool: string): void {
      for (const link of links.of(tenantId, pool)) idle.delete(link)
    },
    /** The node that a new run goes to at once, counted as given to it; undefined: it waits with the others, if there are any. */
    take({ tenantId, pool, pinned, isolation }: RunAim): NodeLink | undefined {
      const nowMs = now().getTime()
      const [link] = links
        .of(tenantId, pool)
        .filter(one => (pinned ?? one.nodeId) === one.nodeId && idle.has(one) && !one.draining)
        .filter(one => room(one) > 0 && acceptsIsolation(one, isolation, nowMs))
        .sort((a, b) => loadOf(a.nodeId) / (a.slots || 1) - loadOf(b.nodeId) / (b.slots || 1))
      if (link) this.given(link.nodeId, 1)
      return link
    },
  }
}
