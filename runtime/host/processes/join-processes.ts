import type { Socket } from 'node:net'
import type { ParentChannel } from '../../../shared/host/processes/parent-channel.ts'
import { listen, type RenderOptions } from '../../../shared/host/serve.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import { type Throttle, throttleOfLogins } from '../../auth/throttle.ts'
import type { PeerOptions } from '../../nodes/peers/peer-client.ts'
import { PEER_PATH } from '../../nodes/peers/peer-route.ts'
import { type RuntimeFacts, type RuntimeNotice, type RuntimeQuestion, runtimePages, TUNNEL_DOOR } from './messages.ts'

export type RuntimeChannel = ParentChannel<RuntimeQuestion, RuntimeNotice, RuntimeFacts>

/** What this process does for the others of its service. */
export interface Answering {
  wake(): void
  /** Its own page of metrics. */
  page(): Promise<string>
  /** What they ask of it as control planes of one store. */
  fetch(request: Request): Promise<Response>
}

/** One of several processes at an address: what the first one and the others do for it. */
export interface ProcessPeers {
  accepted: NonNullable<RenderOptions['accepted']>
  /** It takes no further connections. */
  leave(): void
  /** Where nodes dial in, which the first process listens at once a process asks for it. */
  tunnel: {
    open(): Promise<string>
    whenOpen(listen: () => void): void
    each(take: (socket: Socket) => void): void
  }
  peer: PeerOptions
  /** Tries to log in, counted over all processes. */
  loginTries(shard: string): Throttle
  /** The page of all processes, with this one's. */
  page(own: string): Promise<string>
  /** The last page of this process, which counts on without it. */
  last(page: string): void
  wakeOthers(): void
  answer(answering: Answering): void
  close(): Promise<void>
}

const WAKE_MS = 20
const OPEN = { host: '127.0.0.1', port: 0 }
const BODY_MS = 30_000

export interface JoinOptions {
  channel: RuntimeChannel
  /** Where the first process accepts. */
  origin: string
}

export type JoinedProcesses = ProcessPeers & { heard(notice: RuntimeNotice): void; opened(): void }

/** What the other processes of a service do for this one, and hear of it. */
export async function joinProcesses({ channel, origin }: JoinOptions): Promise<JoinedProcesses> {
  const answering = Promise.withResolvers<Answering>()
  const tries = loginTries(channel)
  const siblings = siblingPeers(channel)
  const waking = coalescedWake(channel)
  const tunnelOpen = Promise.withResolvers<void>()
  const ask = await listenForPeers(async request => (await answering.promise).fetch(request))
  return {
    accepted: { origin, each: take => channel.each(take) },
    leave: () => channel.say({ leaves: true }),
    tunnel: {
      open: () => channel.open(TUNNEL_DOOR),
      whenOpen: listenNow => void tunnelOpen.promise.then(listenNow),
      each: take => channel.each(take, TUNNEL_DOOR),
    },
    peer: { url: ask.origin, fetch: request => fetch(request), siblings: siblings.of(ask.origin) },
    loginTries: tries.of,
    async page(own) {
      return runtimePages.mergePages([own, ...(await channel.gather('page', own))])
    },
    last: page => channel.say({ last: page }),
    wakeOthers: waking.wake,
    answer(given) {
      channel.answer(() => given.page())
      answering.resolve(given)
    },
    async close() {
      waking.close()
      await ask.close(0)
    },
    opened: tunnelOpen.resolve,
    heard(notice) {
      if ('wake' in notice) void answering.promise.then(({ wake }) => wake())
      else if ('tried' in notice) tries.of(notice.shard).note(...notice.tried)
      else siblings.heard(notice)
    },
  }
}

/** A socket of this process alone, for what other processes of the machine ask of it as control planes of one store. */
function listenForPeers(fetchPeer: (request: Request) => Promise<Response>) {
  return listen({
    bind: OPEN,
    bodyMs: BODY_MS,
    fetch: request =>
      new URL(request.url).pathname === PEER_PATH ? fetchPeer(request) : new Response(null, { status: 404 }),
  })
}

/** Where the others are reached, and whether one of them knows of nodes. */
function siblingPeers(channel: Pick<RuntimeChannel, 'say'>) {
  let urls: readonly string[] = []
  let isEngaged = false
  return {
    of: (own: string) => ({
      urls: () => urls.filter(url => url !== own),
      engaged: () => isEngaged,
      engage() {
        if (isEngaged) return
        isEngaged = true
        channel.say({ notice: { engaged: true } })
      },
    }),
    heard(notice: Extract<RuntimeNotice, { engaged: true } | { peers: unknown }>) {
      if ('peers' in notice) urls = notice.peers
      else isEngaged = true
    },
  }
}

function loginTries(channel: Pick<RuntimeChannel, 'say'>) {
  const byShard = new Map<string, Throttle>()
  return {
    of(shard: string): Throttle {
      const known = byShard.get(shard)
      if (known) return known
      const made = throttleOfLogins(systemClock.monotonic, tried => channel.say({ notice: { tried, shard } }))
      byShard.set(shard, made)
      return made
    },
  }
}

/** However many runs are made at once, the others look once. */
function coalescedWake(channel: Pick<RuntimeChannel, 'say'>) {
  let timer: ReturnType<typeof setTimeout> | undefined
  return {
    wake() {
      timer ??= setTimeout(() => {
        timer = undefined
        channel.say({ notice: { wake: true } })
      }, WAKE_MS)
    },
    close: () => clearTimeout(timer),
  }
}
