import { readJson } from '../../../shared/json/read-json.ts'
import { type PeerCommand, type PeerTurnEvents, peerTurnEvents } from '../../../shared/wire/runtime/peer.ts'
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
  /** Processes of this service, each of which may execute a turn itself. */
  siblings: () => readonly string[]
}

type Asking = (heard: { base: number; after: number; kept: number }) => PeerCommand
type Heard = 'ended' | 'broken' | 'not_whole'

const MOST_SESSIONS = 10_000
const decoder = new TextDecoder()

/**
 * The text of a turn on a node reaches the control plane that the node has dialled, and of another turn the process that executes it. Where this
 * one has a listener, it asks that one for the text, piece by piece, and emits it here under the same ids. If it cannot be reached, the text comes
 * at the end, from the store.
 */
export function followRemoteTurns({ remote, reachableNodes, peerClient, live, siblings }: FollowRemoteTurnsDeps) {
  /** The turn of each session that is heard, or that cannot be heard whole. */
  const turns = new Map<string, string>()
  const closed = new AbortController()

  const told = (url: string, asked: PeerCommand) => peerClient.ask(url, asked, undefined, closed.signal)

  /** Who speaks, as far as that is known: the control plane that a node has dialled, or any process beside this one. */
  async function speakers(sessionId: string, turnId: string): Promise<{ urls: readonly string[]; ask: Asking }> {
    const nodeId = (await remote.get(turnId))?.nodeId
    if (nodeId === undefined) {
      return { urls: siblings(), ask: heard => ({ ask: 'said-here', sessionId, turnId, ...heard }) }
    }
    const url = await reachableNodes.peerOf(nodeId)
    return { urls: url === undefined ? [] : [url], ask: heard => ({ ask: 'said', nodeId, sessionId, ...heard }) }
  }

  async function hear({ id: sessionId, lastEvent: base }: SessionState, turnId: string): Promise<Heard> {
    const { urls, ask } = await speakers(sessionId, turnId)
    const mirror = urls.length === 0 ? undefined : live.mirror(sessionId, base)
    if (mirror === undefined) return 'broken'
    let from: string | undefined
    try {
      while (mirror.wanted()) {
        const asked = ask({ base, ...mirror.heard() })
        let answer: Awaited<ReturnType<typeof told>>
        // Of several the first that answers is the one that executes the turn.
        for (const url of from === undefined ? urls : [from]) {
          answer = await told(url, asked)
          if (answer === undefined) continue
          from = url
          break
        }
        if (answer === undefined) return 'broken'
        const said: PeerTurnEvents = peerTurnEvents.parse(readJson(decoder.decode(answer.body)))
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
