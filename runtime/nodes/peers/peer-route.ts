import { Hono } from 'hono'
import { ApiError } from '../../../shared/http/api-error.ts'
import { readBody } from '../../../shared/http/body-limit.ts'
import { toHex, utf8 } from '../../../shared/sign/bytes.ts'
import {
  type PeerCommand,
  type PeerReply,
  type PeerTurnEvents,
  peerRequest,
} from '../../../shared/wire/runtime/peer.ts'
import type { ReceivedSoFar } from '../../sessions/replay-deltas.ts'
import type { NodeLinks, ReadAnswered } from '../registry/node-link.ts'
import { type PeerEncryption, packed, unpacked } from './peer-encryption.ts'

export const PEER_PATH = '/internal/peer'

export interface PeerRouteDeps {
  /** How the others call this control plane. */
  url: string
  box: PeerEncryption
  /** Those that have dialled this process, and no others: a relayed request is relayed no further. */
  links: Pick<NodeLinks, 'get'>
  /** Runs wait in the store. */
  queued: () => void
  /** Whether a turn is executed here. */
  speaks: (sessionId: string, turnId: string) => boolean
  /** What is said here in a turn; waits a little for something. */
  said: (heard: ReceivedSoFar) => Promise<PeerTurnEvents>
  now: () => Date
  maxBytes: number
}

const NOTHING: ReadAnswered = { status: 0, body: new Uint8Array() }

/**
 * What other control planes of this store ask about nodes that have dialled this one. It is no part of the API: only a holder of the master key
 * can ask, no other caller learns why it is refused, and request and answer are sealed.
 */
export function peerRoute({ url, box, links, queued, speaks, said, now, maxBytes }: PeerRouteDeps) {
  const freshness = replayGuard(now().getTime())

  async function taken(request: Request) {
    const bytes = await readBody(request, maxBytes)
    try {
      const { plain, salt, seal } = await box.take(bytes)
      const { head, body } = unpacked(plain)
      const { atMs, to, asked } = peerRequest.parse(head)
      if (to === url && freshness(salt, atMs, now().getTime()) === 'fresh') return { asked, body, seal }
    } catch (cause) {
      throw denied(cause)
    }
    throw denied()
  }

  /** Undefined: there is no such node here, or it does not answer. */
  async function answer(asked: PeerCommand, body: Uint8Array<ArrayBuffer>): Promise<ReadAnswered | undefined> {
    if (asked.ask === 'queued') {
      queued()
      return NOTHING
    }
    if (asked.ask === 'said-here') {
      return speaks(asked.sessionId, asked.turnId)
        ? { status: 200, body: utf8(JSON.stringify(await said(asked))) }
        : undefined
    }
    const link = links.get(asked.nodeId)
    if (link === undefined) return undefined
    switch (asked.ask) {
      case 'read': {
        const { kind, id, from, limit } = asked
        return link.read({ kind, id, from, limit, box: body })
      }
      case 'wake':
        link.wake()
        return NOTHING
      case 'drain':
        link.drain(asked.on)
        return NOTHING
      case 'end':
        link.end()
        return NOTHING
      case 'said':
        return { status: 200, body: utf8(JSON.stringify(await said(asked))) }
      case 'here':
        return NOTHING
    }
  }

  return new Hono().post(PEER_PATH, async c => {
    const { asked, body, seal } = await taken(c.req.raw)
    const found = await answer(asked, body)
    const reply: PeerReply = { answered: found !== undefined, status: found?.status ?? 0 }
    return c.body(await seal(packed(reply, (found ?? NOTHING).body)), 200, {
      'content-type': 'application/octet-stream',
      'cache-control': 'no-store',
    })
  })
}

const denied = (cause?: unknown) =>
  new ApiError('unauthorized', 'only control planes of this installation may call this', { cause })

/** Further apart no two clocks of one installation may be, and no older may a request be. */
export const PEER_SKEW_MS = 30_000
const MOST_SEEN = 200_000

type Freshness = 'fresh' | 'late' | 'repeated' | 'too_many'

/**
 * Lets each request through once. What is older than `PEER_SKEW_MS`, or than this process, is late; what is younger is remembered until
 * it would be late, so that nothing that was heard on the way works again. Where more than can be remembered come, the next are refused.
 */
export function replayGuard(startedMs: number, most = MOST_SEEN) {
  /** By the time at which each would be late; in the order in which they came. */
  const seen = new Map<string, number>()
  return (salt: Uint8Array, atMs: number, nowMs: number): Freshness => {
    for (const [known, lateMs] of seen) {
      if (lateMs >= nowMs) break
      seen.delete(known)
    }
    if (Math.abs(nowMs - atMs) > PEER_SKEW_MS || atMs < startedMs) return 'late'
    const name = toHex(salt)
    if (seen.has(name)) return 'repeated'
    if (seen.size >= most) return 'too_many'
    // From now, and not from when it was made: so they leave in the order in which they came.
    seen.set(name, nowMs + 2 * PEER_SKEW_MS)
    return 'fresh'
  }
}
