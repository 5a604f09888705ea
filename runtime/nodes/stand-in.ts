import type { NodeLink, NodeLinks } from './node-link.ts'
import type { NodeStore } from './store.ts'

/** The link of a node, or of another one with the same store, which can say and do the same. */
export async function standIn(
  links: Pick<NodeLinks, 'get'>,
  nodes: Pick<NodeStore, 'sharing'>,
  nodeId: string,
): Promise<NodeLink | undefined> {
  const own = links.get(nodeId)
  if (own) return own
  for (const id of await nodes.sharing(nodeId)) {
    const link = links.get(id)
    if (link) return link
  }
  return undefined
}

export type OrderTo = (nodeId: string) => Promise<string>

/** Which node is to be given an order: one that is here, where several could act on it. */
export const orderTo =
  (links: Pick<NodeLinks, 'get'>, nodes: Pick<NodeStore, 'sharing'>): OrderTo =>
  async nodeId =>
    (await standIn(links, nodes, nodeId))?.nodeId ?? nodeId
