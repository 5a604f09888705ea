import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import { type Coalesced, coalesced } from '../../shared/time/coalesced.ts'
import type { Live } from '../sessions/live-sessions.ts'
import { replayDeltas } from '../sessions/replay-deltas.ts'
import type { TunnelTimes } from './gateway/timeouts.ts'
import { type PeerOptions, peerClient } from './peers/peer-client.ts'
import { peerEncryption } from './peers/peer-encryption.ts'
import type { PeerRouteDeps } from './peers/peer-route.ts'
import { type ReachableNodes, reachableNodes } from './peers/reachable-nodes.ts'
import type { NodeLinks } from './registry/node-link.ts'
import type { NodeStore } from './registry/store.ts'
import type { RemoteRunStore } from './runs/remote-run-store.ts'
import { followRemoteTurns } from './sessions/follow-remote-turn.ts'

/** This control plane among others, and the key by which they know each other. */
export type PeerIdentity = PeerOptions & { masterKey: Uint8Array<ArrayBuffer> }

export interface PeersDeps {
  /** Undefined: there is no other one. */
  peer: PeerIdentity | undefined
  links: NodeLinks
  store: NodeStore
  remote: RemoteRunStore
  live: Live
  times: TunnelTimes
  now: () => Date
  metrics: Metrics
  log: Log
  maxBodyBytes: number
}

export interface Peers {
  reachableNodes: ReachableNodes
  /** A listener here wants the deltas of a turn that is not executed here. */
  wanted: ReturnType<typeof followRemoteTurns>['wanted'] | undefined
  /** What other control planes may ask of this one. */
  route(offering: Coalesced): PeerRouteDeps | undefined
  /** Hands runs to nodes here, and tells the others of what is left: it may be for a node that is elsewhere. */
  dispatching(offering: Coalesced): Coalesced
  /** Before the tunnels are closed: no turn is followed any more. */
  leave(): void
  close(): Promise<void>
}

/** So long another control plane waits for the next piece of a turn before it asks again. */
const SAID_MS = 1000

/** What is asked of other control planes on the same store and what they may ask of this one, put together. */
export function assemblePeers(deps: PeersDeps): Peers {
  const { peer, links, store, remote, live, times, now, metrics, log } = deps
  if (peer === undefined) {
    return {
      reachableNodes: reachableNodes({ links, store, peerClient: undefined, now, lostMs: times.lostMs }),
      wanted: undefined,
      route: () => undefined,
      dispatching: offering => offering,
      leave: () => undefined,
      close: async () => undefined,
    }
  }
  const box = peerEncryption(peer.masterKey)
  const others = peerClient({
    own: peer,
    box,
    now,
    readMs: times.readMs,
    log,
    asks: metrics.counter('waybill_peer_requests_total', 'Questions to other control planes, by what came of them.'),
  })
  const reached = reachableNodes({ links, store, peerClient: others, now, lostMs: times.lostMs })
  const hearing = followRemoteTurns({
    remote,
    reachableNodes: reached,
    peerClient: others,
    live,
    siblings: peer.siblings?.urls ?? (() => []),
  })
  return {
    reachableNodes: reached,
    wanted: hearing.wanted,
    route: offering => ({
      url: peer.url,
      box,
      links,
      queued: offering.wake,
      now,
      speaks: live.speaks,
      said: heard => replayDeltas(live, heard, Math.min(SAID_MS, times.readMs / 2)),
      // A read may bring texts along that were published here, and what seals them.
      maxBytes: 2 * deps.maxBodyBytes + 65_536,
    }),
    dispatching(offering) {
      // What another control plane reports is passed on to no third one, or two of them would report to each other for ever.
      const telling = coalesced(
        async () => {
          await offering.idle()
          if (await remote.anyQueued()) await reached.tellQueued()
        },
        error => log.warn('other control planes could not be told that runs wait', { error }),
      )
      return {
        wake() {
          offering.wake()
          telling.wake()
        },
        idle: telling.idle,
      }
    },
    leave: hearing.close,
    close: () => others.close(times.readMs),
  }
}
