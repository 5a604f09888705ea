import type { NodeRow } from '../registry/node.ts'
import { provenBackends } from '../registry/node.ts'
import type { NodeLink, NodeLinks } from '../registry/node-link.ts'
import type { NodeStore } from '../registry/store.ts'
import type { PeerClient } from './peer-client.ts'

/** A node that can be asked now: it has dialled this process, or another one that passes on. */
export type ReachableNode = Pick<
  NodeLink,
  'nodeId' | 'backends' | 'draining' | 'read' | 'wake' | 'drain' | 'end' | 'here'
>

export interface ReachableNodesDeps {
  links: NodeLinks
  store: Pick<NodeStore, 'elsewhere' | 'peers'>
  /** Undefined: this control plane reaches no other one. */
  peerClient: PeerClient | undefined
  now: () => Date
  lostMs: number
}

export type ReachableNodes = ReturnType<typeof reachableNodes>

/** Whether the store says that it is connected to another control plane that can be asked. */
export function isElsewhere(
  { peerUrl, signedOff, lastSeenMs }: Pick<NodeRow, 'peerUrl' | 'signedOff' | 'lastSeenMs'>,
  own: string | undefined,
  sinceMs: number,
): boolean {
  return own !== undefined && peerUrl !== undefined && peerUrl !== own && !signedOff && (lastSeenMs ?? -1) > sinceMs
}

/** The nodes that can be asked, here first. Without other control planes this makes no request and costs no statement. */
export function reachableNodes({ links, store, peerClient, now, lostMs }: ReachableNodesDeps) {
  const sinceMs = () => now().getTime() - lostMs
  function remote(row: NodeRow, there: PeerClient): ReachableNode {
    const { id: nodeId, peerUrl: url = '', draining } = row
    const tell = (asked: Parameters<PeerClient['ask']>[1]) => void there.ask(url, asked)
    return {
      nodeId,
      draining,
      backends: provenBackends(row),
      read: ({ kind, id, from = 0, limit = 0, box }) =>
        there.ask(url, { ask: 'read', nodeId, kind, id, from, limit }, box),
      wake: () => tell({ ask: 'wake', nodeId }),
      drain: on => tell({ ask: 'drain', nodeId, on }),
      end: () => tell({ ask: 'end', nodeId }),
      here: async () => (await there.ask(url, { ask: 'here', nodeId })) !== undefined,
    }
  }

  async function first(nodeIds: readonly string[]): Promise<ReachableNode | undefined> {
    const here = nodeIds.map(id => links.get(id)).find(link => link !== undefined)
    if (here !== undefined || peerClient === undefined) return here
    const rows = await store.elsewhere({ ids: nodeIds }, sinceMs())
    const row = nodeIds.flatMap(id => rows.find(one => one.id === id) ?? [])[0]
    return row && remote(row, peerClient)
  }

  return {
    /** One that has dialled this process. */
    near: (nodeId: string): ReachableNode | undefined => links.get(nodeId),

    /** The first of these nodes that can be asked; one that is here before one that is elsewhere. */
    first,

    /** The address of the control plane that a node has dialled, where that is another one. */
    async peerOf(nodeId: string): Promise<string | undefined> {
      if (peerClient === undefined || links.get(nodeId) !== undefined) return undefined
      return (await store.elsewhere({ ids: [nodeId] }, sinceMs()))[0]?.peerUrl
    },

    /** Those of a pool; who is here comes first. */
    async of(tenantId: string, pool: string): Promise<ReachableNode[]> {
      const here = links.of(tenantId, pool)
      if (peerClient === undefined) return here
      const rows = await store.elsewhere({ tenantId, pool }, sinceMs())
      return [...here, ...rows.filter(({ id }) => links.get(id) === undefined).map(row => remote(row, peerClient))]
    },

    /** Whether a node counts as connected, by what is known here without a request. */
    connected: (row: NodeRow): boolean =>
      links.get(row.id) !== undefined || isElsewhere(row, peerClient?.url, sinceMs()),

    /** Something waits for it in the store. It finds that by itself within a heartbeat, so no caller waits for this. */
    wake(nodeId: string): void {
      const link = links.get(nodeId)
      if (link !== undefined) link.wake()
      else if (peerClient !== undefined) {
        void first([nodeId]).then(
          there => there?.wake(),
          () => undefined,
        )
      }
    },

    /** Runs wait for nodes, and none that is here has taken them. */
    async tellQueued(): Promise<void> {
      if (peerClient === undefined) return
      for (const url of await store.peers(sinceMs())) void peerClient.ask(url, { ask: 'queued' })
    },
  }
}
