import { readJson } from '../../../shared/json/read-json.ts'
import { type PeerTurnEvents, peerTurnEvents } from '../../../shared/wire/runtime/peer.ts'
import type { Live } from '../../sessions/live-sessions.ts'
import type { SessionState } from '../../sessions/store.ts'
import type { PeerClient } from '../peers/peer-client.ts'
import type { ReachableNodes } from '../peers/reachable-nodes.ts'
import type { RemoteRunStore } from '../runs/remote-run-store.ts'

export interface FollowRemoteTurnsDeps {
  remote: Pick<RemoteRunStore, 'get'>
  reachableNodes: Pick<ReachableNodes, 'peerOf'>
  peerClient: Pick<PeerClient, 'ask'>
  live: Pick<Live, 'mirror'>
}

type Heard = 'ended' | 'broken' | 'not_whole'

const MOST_SESSIONS = 10_000
const decoder = new TextDecoder()

/**
 * The text of a turn on a node reaches the control plane that the node has dialled. Where this one has a listener, it asks that one for
 * the text, piece by piece, and emits it here under the same ids. If it cannot be reached, the text comes at the end, from the store.
 */
export function followRemoteTurns({ remote, reachableNodes, peerClient, live }: FollowRemoteTurnsDeps) {
  /** The turn of each session that is heard, or that cannot be heard whole. */
  const turns = new Map<string, string>()
  const closed = new AbortController()

  async function ask(
    nodeId: string,
    url: string,
    of: { sessionId: string; base: number; after: number; kept: number },
  ) {
    const answer = await peerClient.ask(url, { ask: 'said', nodeId, ...of }, undefined, closed.signal)
    return answer && peerTurnEvents.parse(readJson(decoder.decode(answer.body)))
  }

  async function hear({ id: sessionId, lastEvent: base }: SessionState, turnId: string): Promise<Heard> {
    const nodeId = (await remote.get(turnId))?.nodeId
    const url = nodeId === undefined ? undefined : await reachableNodes.peerOf(nodeId)
    const mirror = nodeId === undefined || url === undefined ? undefined : live.mirror(sessionId, base)
    if (nodeId === undefined || url === undefined || mirror === undefined) return 'broken'
    try {
      while (mirror.wanted()) {
        const said: PeerTurnEvents | undefined = await ask(nodeId, url, { sessionId, base, ...mirror.heard() })
        if (said === undefined) return 'broken'
        if (!said.covered) return 'not_whole'
        if (mirror.take(said)) return 'ended'
      }
      return 'broken'
    } finally {
      mirror.end()
    }
  }

  return {
    /** Cheap to call often: a turn is heard once. */
    wanted(session: SessionState): void {
      const { id, turnId } = session
      if (turnId === undefined || turns.get(id) === turnId || closed.signal.aborted) return
      if (turns.size >= MOST_SESSIONS) turns.clear()
      turns.set(id, turnId)
      void hear(session, turnId)
        .catch((): Heard => 'broken')
        .then(how => {
          if (how !== 'not_whole' && turns.get(id) === turnId) turns.delete(id)
        })
    },
    close: (): void => closed.abort(),
  }
}
