import type { ReachableNode, ReachableNodes } from '../peers/reachable-nodes.ts'
import type { NodeStore } from '../registry/store.ts'

/**
 * The node, or another one with the same store, which can say and do the same: one that is here before one that is elsewhere, and the node
 * itself before the others.
 */
export async function fallbackNode(
  reachableNodes: Pick<ReachableNodes, 'near' | 'first'>,
  nodes: Pick<NodeStore, 'sharing'>,
  nodeId: string,
): Promise<ReachableNode | undefined> {
  return reachableNodes.near(nodeId) ?? (await reachableNodes.first([nodeId, ...(await nodes.sharing(nodeId))]))
}

export type CommandTarget = (nodeId: string) => Promise<string>

/** Which node is to be given an order: one that is connected, where several could act on it. */
export const commandTarget =
  (reachableNodes: Pick<ReachableNodes, 'near' | 'first'>, nodes: Pick<NodeStore, 'sharing'>): CommandTarget =>
  async nodeId =>
    (await fallbackNode(reachableNodes, nodes, nodeId))?.nodeId ?? nodeId
