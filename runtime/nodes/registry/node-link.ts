import type { z } from 'zod'
import type { Backend, Isolation } from '../../../shared/wire/runtime/isolation.ts'
import type { nodeReadKind } from '../../../shared/wire/runtime/peer.ts'
import { satisfies } from '../../agents/isolation.ts'

export interface NodeReadRequest {
  kind: z.infer<typeof nodeReadKind>
  id: string
  from?: number
  limit?: number
  box?: Uint8Array<ArrayBuffer>
  /** Events may come as lines. */
  lines?: boolean
  /** Those lines may end before the limit, and say so. */
  pages?: boolean
}

export interface ReadAnswered {
  /** As HTTP has it: 200, 404, 500. */
  status: number
  body: Uint8Array<ArrayBuffer>
}

/** A node that is connected to this process. What must reach it even after a cut goes through the store, and `wake` says so. */
export interface NodeLink {
  readonly nodeId: string
  readonly tenantId: string
  readonly pool: string
  readonly backends: readonly Backend[]
  readonly slots: number
  draining: boolean
  /** Until then it is offered nothing: it has just refused. */
  restingUntilMs: number
  /** Something waits for it in the store. */
  wake(): void
  /** Asks for what only the node has; undefined: it did not answer in time, or went away. */
  read(asked: NodeReadRequest): Promise<ReadAnswered | undefined>
  /** It is given no further work, or some again, and told so; that is of no use after a cut. */
  drain(on: boolean): void
  end(): void
  /** Whether it is still connected. */
  here(): Promise<boolean>
}

export type NodeLinks = ReturnType<typeof nodeLinks>

/** The nodes that are connected to this process, by their ids. */
export function nodeLinks() {
  const links = new Map<string, NodeLink>()
  return {
    get: (nodeId: string): NodeLink | undefined => links.get(nodeId),
    all: (): NodeLink[] => [...links.values()],
    of: (tenantId: string, pool: string): NodeLink[] =>
      [...links.values()].filter(link => link.tenantId === tenantId && link.pool === pool),
    up(link: NodeLink): void {
      links.set(link.nodeId, link)
    },
    down(link: NodeLink): void {
      if (links.get(link.nodeId) === link) links.delete(link.nodeId)
    },
  }
}

/** Whether the node may be given a run of that isolation now, apart from how much it has to do and whether it is drained. */
export function acceptsIsolation(link: NodeLink, isolation: Isolation, nowMs: number): boolean {
  return nowMs >= link.restingUntilMs && satisfies(isolation, link.backends)
}
