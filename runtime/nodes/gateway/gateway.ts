import { create, fromBinary } from '@bufbuild/protobuf'
import type { Log } from '../../../shared/log/log.ts'
import type { Counter } from '../../../shared/metrics/metrics.ts'
import { joined } from '../../../shared/sign/bytes.ts'
import type { Clock } from '../../../shared/time/clock.ts'
import { type Channel, frameChannel } from '../../../shared/tunnel/channel.ts'
import {
  type BudgetAsk,
  type ControlFrame,
  ControlFrameSchema,
  type EnrolReply,
  EnrolReplySchema,
  type EnrolRequest,
  type Hello,
  type NodeFrame,
  type ReadResponse,
  type RefreshReply,
  RefreshReplySchema,
  type RefreshRequest,
  type SessionDelta,
} from '../../../shared/tunnel/gateway.gen.ts'
import { type Inbox, inbox } from '../../../shared/tunnel/inbox.ts'
import { type Outbox, outbox } from '../../../shared/tunnel/outbox.ts'
import { frameWeight, PROTO, TunnelRefusal } from '../../../shared/tunnel/protocol.ts'
import type { enrolment } from '../registry/enrolment.ts'
import { type NodeRow, provenBackends, readBackends } from '../registry/node.ts'
import type { NodeLink, NodeLinks, ReadAnswered } from '../registry/node-link.ts'
import type { Arrival, NodeStore } from '../registry/store.ts'
import type { Granted } from '../runs/remote-budgets.ts'
import type { RunLimit } from '../runs/remote-run-store.ts'
import type { TunnelTimes } from './timeouts.ts'

/** The server end of the tunnel without its wire: gRPC puts it on a socket, tests call it as it is. */
export interface NodeGateway {
  enrol(request: EnrolRequest): Promise<EnrolReply>
  refresh(request: RefreshRequest): Promise<RefreshReply>
  /** Throws TunnelRefusal; ends without an error where the node is to dial again. */
  connect(token: string | undefined, frames: AsyncIterable<NodeFrame>): AsyncGenerator<ControlFrame>
  /** Ends every stream; the nodes dial again, here or at the next process. */
  close(): Promise<void>
}

export interface GatewayDeps {
  store: NodeStore
  enrolment: ReturnType<typeof enrolment>
  links: NodeLinks
  /** What a node told, in order; handled again when it throws. */
  applyReports: (node: NodeRow, frames: readonly NodeFrame[]) => Promise<void>
  /** Of the runs that a node says it has, as its process begins, those that it is not to go on with. */
  over: (node: NodeRow, held: Hello['held']) => Promise<string[]>
  /** A node is here, with the runs that it says it has. */
  arrived: (link: NodeLink, held: Hello['held'], fresh: boolean) => Promise<void>
  heard: () => void
  /** A piece of what it says in a turn. */
  /** Resolves when its node may say more. */
  said: (node: NodeRow, piece: SessionDelta) => Promise<void>
  /** Whether a run of it may make its next call; undefined: nothing is to be said. */
  asked: (node: NodeRow, ask: BudgetAsk) => Promise<Granted | undefined>
  /** What the budgets of the agents allow whose runs it has. */
  limitsOn: (nodeId: string) => Promise<ReadonlyMap<string, RunLimit>>
  reconnects: Pick<Counter, 'add'>
  clock: Clock
  newId: () => string
  log: Log
  times: TunnelTimes
}

/** What outlives the streams of one life of a node process. */
interface Peer {
  node: NodeRow
  streamId: string
  channel: Channel<ControlFrame, NodeFrame>
  takesLimits: boolean
  outbox: Outbox
  inbox: Inbox<NodeFrame>
  reads: Map<string, { parts: Uint8Array[]; weight: number; done: (answer: ReadAnswered | undefined) => void }>
  /** Questions about budgets that are being answered. */
  asked: Set<string>
  stop: AbortController | undefined
}

/** What may stand in a bundle; `ackOnly` is the place of something that is not to be told any more. */
const TOLD = new Set<NodeFrame['body']['case']>([
  ...(['accept', 'event', 'complete', 'approval', 'childAsk', 'takeover', 'parked', 'secretAck', 'ackOnly'] as const),
])
const MOST_READS = 1000
const MOST_ASKS = 1000
const MOST_READ_BYTES = 64 * 1024 * 1024
/** What a part of an answer takes beside its bytes. */
const PART_BYTES = 1024
/** What waits for a node that does not read its stream. */
const MOST_PASSING_BYTES = 16 * 1024 * 1024
/** A node fills one with up to 500. */
const MOST_BUNDLED = 1000
const HELLO_MS = 10_000
/** Streams of one node that have not started. */
const MOST_STARTING = 4
/** Former lives of a node that are known again. */
const MOST_FORMER = 16
const TWO_PROCESSES =
  'another process has come with the same node.json: end one of them, and start the other again; a second machine is announced as a node of its own'

export function nodeGateway(deps: GatewayDeps): NodeGateway {
  const { store, links, clock, times } = deps
  const peers = new Map<string, Peer>()
  const starting = new Map<string, number>()
  /** The lives of each node that another one followed. */
  const former = new Map<string, string[]>()
  let closing = false

  /** Memory is taken for a frame before it is there, so streams that have not started are bounded before it is read. */
  async function helloOf(node: NodeRow, frames: AsyncIterator<NodeFrame>): Promise<Hello> {
    const others = starting.get(node.id) ?? 0
    if (others >= MOST_STARTING) throw new TunnelRefusal('replaced', 'this node has dialled again before its hello')
    starting.set(node.id, others + 1)
    try {
      return await firstFrame(frames)
    } finally {
      const left = starting.get(node.id)! - 1
      if (left === 0) starting.delete(node.id)
      else starting.set(node.id, left)
    }
  }

  function peerOf(node: NodeRow, hello: Hello): { peer: Peer; fresh: boolean } {
    const known = peers.get(node.id)
    if (known?.streamId === hello.streamId) return { peer: known, fresh: false }
    const before = former.get(node.id) ?? []
    // A process that ended does not come back. Both would execute what is the node's.
    if (before.includes(hello.streamId)) {
      deps.log.error('two processes have the same node.json; only the one that came last is heard', { nodeId: node.id })
      throw new TunnelRefusal('replaced', TWO_PROCESSES)
    }
    if (known) {
      former.set(node.id, [...before, known.streamId].slice(-MOST_FORMER))
      forget(known)
    }
    const peer = newPeer(deps, node, hello)
    peers.set(node.id, peer)
    return { peer, fresh: true }
  }

  return {
    enrol: async request => create(EnrolReplySchema, await deps.enrolment.enrol(request)),
    refresh: async request => create(RefreshReplySchema, await deps.enrolment.refresh(request)),

    async *connect(token, incoming) {
      const { node, expiresMs } = await deps.enrolment.nodeOf(token)
      const frames = incoming[Symbol.asyncIterator]()
      const hello = await helloOf(node, frames)
      checkHello(hello, node)
      if (closing) throw new TunnelRefusal('closing', 'the control plane is stopping: dial again')
      const { peer, fresh } = peerOf(node, hello)
      peer.node = node
      const stop = new AbortController()
      peer.stop?.abort(new TunnelRefusal('replaced', 'this node has dialled again'))
      peer.stop = stop
      const nowMs = clock.now().getTime()
      await store.arrived(node.id, arrivalOf(hello), nowMs)
      deps.reconnects.add(1)
      yield welcome(peer, times, hello.first ? await deps.over(node, hello.held) : [])
      const link = linkOf(deps, peer, hello)
      links.up(link)
      const aged = setTimeout(() => stop.abort(), Math.max(1000, Math.min(times.maxStreamMs, expiresMs - nowMs)))
      try {
        void listen(deps, peer, frames, stop)
        await deps.arrived(link, hello.held, fresh)
        peer.outbox.wake()
        yield* peer.channel.open(Number(hello.lastSeenSeq), stop.signal)
        const { reason } = stop.signal
        if (reason instanceof TunnelRefusal && reason.code !== 'closing') throw reason
      } finally {
        clearTimeout(aged)
        links.down(link)
        if (links.get(node.id) === undefined) void store.left(node.id).catch(() => undefined)
        if (peer.stop === stop) peer.stop = undefined
        stop.abort()
        for (const read of [...peer.reads.values()]) read.done(undefined)
        void frames.return?.().catch(() => undefined)
      }
    },

    async close() {
      closing = true
      for (const peer of peers.values()) {
        peer.stop?.abort(new TunnelRefusal('closing', 'the control plane is stopping'))
        peer.inbox.close()
        await peer.inbox.idle()
        await peer.outbox.close()
      }
    },
  }
}

function forget(peer: Peer): void {
  peer.stop?.abort(new TunnelRefusal('replaced', 'this node has dialled again'))
  peer.inbox.close()
  void peer.outbox.close()
  for (const read of peer.reads.values()) read.done(undefined)
}

function takeReadResponse(peer: Peer, { requestId, status, body, last }: ReadResponse): void {
  const read = peer.reads.get(requestId)
  if (read === undefined) return
  read.parts.push(body)
  read.weight += body.length + PART_BYTES
  if (read.weight > MOST_READ_BYTES) read.done({ status: 500, body: new Uint8Array() })
  else if (last) read.done({ status, body: joined(read.parts) })
}

/** A process of a node that dials for the first time. */
function newPeer(deps: GatewayDeps, node: NodeRow, hello: Hello): Peer {
  const frames = inbox<NodeFrame>(
    async batch => {
      await deps.applyReports(peer.node, batch.flatMap(unbundled))
      peer.channel.done(Number(batch.at(-1)?.seq ?? 0))
    },
    { log: deps.log, weigh: frame => unbundled(frame).reduce((sum, one) => sum + frameWeight(one), 0) },
  )
  const peer: Peer = {
    node,
    streamId: hello.streamId,
    takesLimits: hello.limits,
    inbox: frames,
    reads: new Map(),
    asked: new Set(),
    stop: undefined,
    channel: frameChannel<ControlFrame, NodeFrame>({
      ackOnly: () => create(ControlFrameSchema, { body: { case: 'ackOnly', value: {} } }),
      weigh: ({ body }) => 500 + sizeOf(body),
      mostPassing: MOST_PASSING_BYTES,
      onAcked: seq => peer.outbox.acked(seq),
      sentBefore: Number(hello.lastSeenSeq),
    }),
    outbox: outbox(
      {
        async read(afterId, most) {
          const rows = await deps.store.frames(node.id, afterId, most)
          return rows.map(({ id, frame }) => ({ id, frame: fromBinary(ControlFrameSchema, frame) }))
        },
        remove: upToId => deps.store.framesArrived(node.id, upToId),
      },
      () => peer.channel,
      deps.log,
    ),
  }
  return peer
}

function linkOf(deps: GatewayDeps, peer: Peer, hello: Hello): NodeLink {
  const { id: nodeId, tenantId, pool } = peer.node
  const backends = provenBackends({ backends: readBackends(hello.backends) })
  const link: NodeLink = {
    nodeId,
    tenantId,
    pool,
    backends,
    slots: Math.min(hello.slots, 10_000),
    restingUntilMs: 0,
    draining: peer.node.draining,
    wake: () => peer.outbox.wake(true),
    read({ kind, id, from = 0, limit = 0, box = new Uint8Array(), lines = false, pages = false }) {
      if (peer.reads.size >= MOST_READS) return Promise.resolve(undefined)
      const requestId = deps.newId()
      return new Promise(resolve => {
        const timer = setTimeout(() => done(undefined), deps.times.readMs)
        const done = (answer: ReadAnswered | undefined) => {
          clearTimeout(timer)
          peer.reads.delete(requestId)
          resolve(answer)
        }
        peer.reads.set(requestId, { parts: [], weight: 0, done })
        const value = { requestId, kind, id, from: BigInt(from), limit, box, lines, pages }
        if (!peer.channel.pass(create(ControlFrameSchema, { body: { case: 'readRequest', value } }))) done(undefined)
      })
    },
    drain(on) {
      link.draining = on
      peer.channel.pass(create(ControlFrameSchema, { body: { case: 'drain', value: { on } } }))
    },
    end: () => peer.stop?.abort(new TunnelRefusal('unauthenticated', 'this node was removed')),
    here: async () => deps.links.get(nodeId) === link,
  }
  return link
}

/** Answered when the answer is there; asked again meanwhile, it is one question. */
async function answerBudgetAsk(deps: GatewayDeps, peer: Peer, ask: BudgetAsk): Promise<void> {
  const { requestId } = ask
  if (peer.asked.has(requestId) || peer.asked.size >= MOST_ASKS) return
  peer.asked.add(requestId)
  try {
    const value = await deps.asked(peer.node, ask)
    if (value) peer.channel.pass(create(ControlFrameSchema, { body: { case: 'budgetGrant', value } }))
  } catch (error) {
    // Its stream is gone: it asks again on the next, here or at the next process.
    if (peer.stop === undefined || peer.stop.signal.aborted) return
    deps.log.error('a node asked for a budget and is not answered; it asks again', { error, nodeId: peer.node.id })
  } finally {
    peer.asked.delete(requestId)
  }
}

/** What was decided about it where it is not connected. */
function followDecisions(deps: GatewayDeps, peer: Peer, stands: Awaited<ReturnType<NodeStore['seen']>>): void {
  const link = deps.links.get(peer.node.id)
  if (link === undefined) return
  if (stands === undefined) link.end()
  else if (stands.draining !== link.draining) link.drain(stands.draining)
}

/** A budget that was changed holds for runs that are on their way, too. */
async function passLimits({ limitsOn }: GatewayDeps, { node, channel }: Peer): Promise<void> {
  const agents = [...(await limitsOn(node.id))].map(([agentId, { costNano, hard, ofDay, tools }]) => ({
    agentId,
    ...(costNano !== undefined && { runCostNanoUsd: BigInt(costNano), runCostHard: hard }),
    askBudget: ofDay,
    toolLimits: tools,
  }))
  if (agents.length > 0) channel.pass(create(ControlFrameSchema, { body: { case: 'limits', value: { agents } } }))
}

async function takeFrame(deps: GatewayDeps, peer: Peer, frame: NodeFrame): Promise<void> {
  const { body } = frame
  switch (body.case) {
    case 'accept':
    case 'event':
    case 'complete':
    case 'approval':
    case 'childAsk':
    case 'takeover':
    case 'parked':
    case 'secretAck':
      if (frame.seq === 0n) throw new TunnelRefusal('bad_frame', `a ${body.case} frame needs a number`)
      return peer.inbox.put(frame)
    case 'bundle':
      if (
        frame.seq === 0n ||
        body.value.frames.length > MOST_BUNDLED ||
        !body.value.frames.every(({ body: { case: one } }) => TOLD.has(one))
      ) {
        const needs = `a bundle needs a number, and holds up to ${MOST_BUNDLED} frames of what a node tells`
        throw new TunnelRefusal('bad_frame', needs)
      }
      return peer.inbox.put(frame)
    case 'heartbeat':
      deps.heard()
      peer.outbox.wake()
      followDecisions(
        deps,
        peer,
        await deps.store.seen(peer.node.id, deps.clock.now().getTime(), body.value.activeRuns),
      )
      return peer.takesLimits ? passLimits(deps, peer) : undefined
    case 'readResponse':
      return takeReadResponse(peer, body.value)
    case 'sessionDelta':
      return deps.said(peer.node, body.value)
    case 'budgetAsk':
      if (frame.seq !== 0n) throw new TunnelRefusal('bad_frame', 'a budgetAsk frame has no number')
      void answerBudgetAsk(deps, peer, body.value)
      return
    case 'ackOnly':
      return frame.seq === 0n ? undefined : peer.inbox.put(frame)
    case 'pong':
      return
    default:
      throw new TunnelRefusal('bad_frame', `a ${body.case ?? 'frame without a body'} is not expected here`)
  }
}

/** Reads the stream until it ends, is replaced, or breaks a rule. */
async function listen(
  deps: GatewayDeps,
  peer: Peer,
  frames: AsyncIterator<NodeFrame>,
  stop: AbortController,
): Promise<void> {
  let heard = deps.clock.monotonic()
  const watch = setInterval(
    () => {
      if (deps.clock.monotonic() - heard > deps.times.lostMs) {
        stop.abort(new TunnelRefusal('closing', `nothing was heard for ${deps.times.lostMs / 1000} s`))
      } else peer.channel.pass(create(ControlFrameSchema, { body: { case: 'ping', value: { n: 0n } } }))
    },
    Math.min(deps.times.heartbeatMs, deps.times.lostMs / 3),
  )
  try {
    while (!stop.signal.aborted) {
      const next = await frames.next()
      if (peer.stop !== stop) return
      if (next.done) {
        await deps.store.signedOff(peer.node.id, deps.clock.now().getTime())
        stop.abort()
        return
      }
      heard = deps.clock.monotonic()
      const fresh = peer.channel.receive(next.value)
      if (fresh) await takeFrame(deps, peer, fresh)
    }
  } catch (error) {
    stop.abort(
      error instanceof TunnelRefusal ? error : new TunnelRefusal('closing', 'the stream broke', { cause: error }),
    )
  } finally {
    clearInterval(watch)
  }
}

const unbundled = (frame: NodeFrame): NodeFrame[] => (frame.body.case === 'bundle' ? frame.body.value.frames : [frame])

function sizeOf({ case: kind, value }: ControlFrame['body']): number {
  if (kind === 'readRequest') return value.box.length
  return kind === 'assign' ? value.inputSealed.length + value.textsSealed.length : 0
}

async function firstFrame(frames: AsyncIterator<NodeFrame>): Promise<Hello> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TunnelRefusal('unauthenticated', 'no hello came in time')), HELLO_MS)
  })
  try {
    const { value, done } = await Promise.race([frames.next(), late])
    if (done || value.body.case !== 'hello') throw new TunnelRefusal('unauthenticated', 'expected a hello first')
    return value.body.value
  } finally {
    clearTimeout(timer)
  }
}

function checkHello(hello: Hello, node: NodeRow): void {
  if (hello.nodeId !== node.id) throw new TunnelRefusal('unauthenticated', 'this token is of another node')
  // It is kept for a node's former lives.
  if (hello.streamId.length > 64) throw new TunnelRefusal('bad_frame', 'a stream id has at most 64 characters')
  if (hello.proto !== PROTO) {
    throw new TunnelRefusal(
      'unknown_protocol',
      `this control plane speaks version ${PROTO} of the tunnel, and the node ${hello.proto}`,
    )
  }
}

/** What a hello says of the node, within the bounds of its columns. */
function arrivalOf(hello: Hello): Arrival {
  return {
    backends: readBackends(hello.backends),
    slots: Math.min(hello.slots, 10_000),
    vcpus: finite(hello.vcpus),
    memoryMb: Number(hello.memoryMb % 1_000_000_000n),
    version: hello.version.slice(0, 64).toWellFormed(),
    storeId: /^[0-9a-f-]{36}$/.test(hello.storeId) ? hello.storeId : null,
  }
}

function welcome(peer: Peer, times: TunnelTimes, over: string[]): ControlFrame {
  const value = {
    lastSeenSeq: BigInt(peer.channel.seen),
    heartbeatSeconds: Math.max(1, Math.round(times.heartbeatMs / 1000)),
    lostSeconds: Math.max(1, Math.round(times.lostMs / 1000)),
    bundles: true,
    parked: true,
    over,
  }
  return create(ControlFrameSchema, { body: { case: 'welcome', value } })
}

function finite(value: number): number {
  return Number.isFinite(value) ? Math.min(Math.max(value, 0), 100_000) : 0
}
