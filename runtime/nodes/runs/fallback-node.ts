import type { Reach, Reached } from '../peers/reachable-nodes.ts'
import type { NodeStore } from '../registry/store.ts'

/**
 * The node, or another one with the same store, which can say and do the same: one that is here before one that is elsewhere, and the node
 * itself before the others.
 */
export async function standIn(
  reach: Pick<Reach, 'near' | 'first'>,
  nodes: Pick<NodeStore, 'sharing'>,
  nodeId: string,
): Promise<Reached | undefined> {
  return reach.near(nodeId) ?? (await reach.first([nodeId, ...(await nodes.sharing(nodeId))]))
}

export type OrderTo = (nodeId: string) => Promise<string>

/** Which node is to be given an order: one that is connected, where several could act on it. */
export const orderTo =
  (reach: Pick<Reach, 'near' | 'first'>, nodes: Pick<NodeStore, 'sharing'>): OrderTo =>
  async nodeId =>
    (await standIn(reach, nodes, nodeId))?.nodeId ?? nodeId
