import { readBody } from '../../../shared/http/body-limit.ts'
import { inFlight } from '../../../shared/http/in-flight.ts'
import type { Log } from '../../../shared/log/log.ts'
import type { Counter } from '../../../shared/metrics/metrics.ts'
import { utf8 } from '../../../shared/sign/bytes.ts'
import { underDeadline } from '../../../shared/time/until-aborted.ts'
import { type PeerCommand, type PeerRequest, peerReply } from '../../../shared/wire/runtime/peer.ts'
import type { ReadAnswered } from '../registry/node-link.ts'
import { type PeerEncryption, packed, unpacked } from './peer-encryption.ts'
import { PEER_PATH } from './peer-route.ts'

/** This control plane among others of one store. */
export interface PeerOptions {
  /** Where the others reach this one, and nothing else: no balancer. */
  url: string
  /** The way to the others. It goes to addresses that they wrote into the store, which no tenant can. */
  fetch: (request: Request) => Promise<Response>
  /** Processes that answer at one address with this one. */
  siblings?: SiblingPeers | undefined
}

/** The other processes of one service: each knows the others, and says so when nodes come into play. */
export interface SiblingPeers {
  urls(): readonly string[]
  /** A node was announced at one of them, or has enrolled. */
  engaged(): boolean
  engage(): void
}

export interface PeerClientDeps {
  own: PeerOptions
  box: PeerEncryption
  now: () => Date
  /** As long as a node may take for an answer. */
  readMs: number
  asks: Pick<Counter, 'add'>
  log: Log
}

/** A node answers at most 64 MiB; a little is around it. */
const MOST_REPLY_BYTES = 65 * 1024 * 1024

export type PeerClient = ReturnType<typeof peerClient>

/** The other control planes, asked for what only the one can do that a node has dialled. Nothing of it is kept or logged. */
export function peerClient({ own, box, now, readMs, asks, log }: PeerClientDeps) {
  const open = inFlight()
  let complainedMs = Number.NEGATIVE_INFINITY

  async function exchange(
    url: string,
    asked: PeerCommand,
    body: Uint8Array,
    signal: AbortSignal,
  ): Promise<ReadAnswered | undefined> {
    const request: PeerRequest = { atMs: now().getTime(), to: url, asked }
    const sealed = await box.ask(packed(request, body))
    const response = await own.fetch(
      new Request(new URL(PEER_PATH, url), {
        method: 'POST',
        body: sealed.bytes,
        redirect: 'error' as const,
        signal,
        headers: { 'content-type': 'application/octet-stream', 'accept-encoding': 'identity' },
      }),
    )
    if (!response.ok) {
      void response.body?.cancel().catch(() => undefined)
      if (response.status === 401 || response.status === 404) complain(url, response.status)
      asks.add(1, { outcome: response.status === 401 ? 'refused' : 'failed' })
      return undefined
    }
    const { head, body: told } = unpacked(await sealed.open(await readBody(response, MOST_REPLY_BYTES)))
    const { answered, status } = peerReply.parse(head)
    asks.add(1, { outcome: answered ? 'answered' : 'absent' })
    return answered ? { status, body: told } : undefined
  }

  /** Not for every question: they come as often as clients ask. */
  function complain(url: string, status: number): void {
    const nowMs = now().getTime()
    if (nowMs - complainedMs < 60_000) return
    complainedMs = nowMs
    const message =
      'another control plane refuses what is asked of it: both need the same master key, clocks that agree, and PLATFORM_PEER_URL as each is reached'
    log.error(message, { peer: url, status })
  }

  return {
    url: own.url,

    /** Undefined: it did not answer in time, or the node is not there. */
    ask(
      url: string,
      asked: PeerCommand,
      body: Uint8Array = utf8(''),
      gone: AbortSignal = new AbortController().signal,
    ): Promise<ReadAnswered | undefined> {
      // The wait itself ends at the deadline: a signal that only a Request refers to can be collected before it fires.
      const answered = underDeadline(
        gone,
        readMs,
        signal => exchange(url, asked, body, signal),
        () => new DOMException('the other control plane did not answer in time', 'TimeoutError'),
      )
      return open.track(
        answered.catch(error => {
          asks.add(1, { outcome: 'unreachable' })
          log.debug('another control plane did not answer', { peer: url, error })
          return undefined
        }),
      )
    },

    /** Lets requests in flight come to their end. */
    close: (ms: number): Promise<void> => open.settled(ms),
  }
}
