import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import { type Coalesced, coalesced } from '../../shared/time/coalesced.ts'
import type { Live } from '../sessions/live-sessions.ts'
import { saidSince } from '../sessions/replay-deltas.ts'
import type { TunnelTimes } from './gateway/timeouts.ts'
import { type PlaneOptions, planes } from './peers/peer-client.ts'
import { planeBox } from './peers/peer-encryption.ts'
import type { PlaneRouteDeps } from './peers/peer-route.ts'
import { type Reach, reach } from './peers/reachable-nodes.ts'
import type { NodeLinks } from './registry/node-link.ts'
import type { NodeStore } from './registry/store.ts'
import type { FarStore } from './runs/remote-run-store.ts'
import { farHearing } from './sessions/follow-remote-turn.ts'

/** This control plane among others, and the key by which they know each other. */
export type Plane = PlaneOptions & { masterKey: Uint8Array<ArrayBuffer> }

export interface AmongPlanesDeps {
  /** Undefined: there is no other one. */
  plane: Plane | undefined
  links: NodeLinks
  store: NodeStore
  far: FarStore
  live: Live
  times: TunnelTimes
  now: () => Date
  metrics: Metrics
  log: Log
  maxBodyBytes: number
}

export interface AmongPlanes {
  reach: Reach
  /** Somebody here wants the pieces of a turn that is not executed here. */
  wanted: ReturnType<typeof farHearing>['wanted'] | undefined
  /** What other control planes may ask of this one. */
  route(offering: Coalesced): PlaneRouteDeps | undefined
  /** Hands runs to nodes here, and tells the others of what is left: it may be for a node that is elsewhere. */
  dispatching(offering: Coalesced): Coalesced
  /** Before the tunnels are closed: nobody is heard any more. */
  leave(): void
  close(): Promise<void>
}

/** So long another control plane waits for the next piece of a turn before it asks again. */
const SAID_MS = 1000

/** What is asked of other control planes on the same store and what they may ask of this one, put together. */
export function amongPlanes(deps: AmongPlanesDeps): AmongPlanes {
  const { plane, links, store, far, live, times, now, metrics, log } = deps
  if (plane === undefined) {
    return {
      reach: reach({ links, store, planes: undefined, now, lostMs: times.lostMs }),
      wanted: undefined,
      route: () => undefined,
      dispatching: offering => offering,
      leave: () => undefined,
      close: async () => undefined,
    }
  }
  const box = planeBox(plane.masterKey)
  const others = planes({
    ...{ own: plane, box, now, readMs: times.readMs, log },
    asks: metrics.counter('waybill_plane_asks_total', 'Questions to other control planes, by what came of them.'),
  })
  const reached = reach({ links, store, planes: others, now, lostMs: times.lostMs })
  const hearing = farHearing({ far, reach: reached, planes: others, live })
  return {
    reach: reached,
    wanted: hearing.wanted,
    route: offering => ({
      ...{ url: plane.url, box, links, queued: offering.wake, now },
      said: heard => saidSince(live, heard, Math.min(SAID_MS, times.readMs / 2)),
      // A read may bring texts along that were published here, and what seals them.
      maxBytes: 2 * deps.maxBodyBytes + 65_536,
    }),
    dispatching(offering) {
      // What another control plane tells is told to nobody, or two of them would tell each other for ever.
      const telling = coalesced(
        async () => {
          await offering.idle()
          if (await far.anyQueued()) await reached.tellQueued()
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
