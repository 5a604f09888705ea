import { create } from '@bufbuild/protobuf'
import type { BudgetRequest } from '../../runtime/nodes/worker/budget-requests.ts'
import type { NodeWorker, Piece } from '../../runtime/nodes/worker/worker.ts'
import type { Log } from '../../shared/log/log.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import type { Clock } from '../../shared/time/clock.ts'
import { sleep } from '../../shared/time/sleep.ts'
import { type Channel, frameChannel } from '../../shared/tunnel/channel.ts'
import {
  type ControlFrame,
  type NodeFrame,
  NodeFrameSchema,
  type ReadRequest,
} from '../../shared/tunnel/gateway.gen.ts'
import { type Inbox, inbox } from '../../shared/tunnel/inbox.ts'
import { outbox } from '../../shared/tunnel/outbox.ts'
import { frameWeight, PROTO, TunnelRefusal } from '../../shared/tunnel/protocol.ts'
import { VERSION } from '../../shared/version.ts'
import { redialDelay } from './redial-delay.ts'
import type { NodeTransport } from './transport.ts'

export interface BackendReport {
  name: string
  ok: boolean
  detail: string
  verifiedUnix: bigint
  accel: string
}

export interface TunnelOptions {
  transport: NodeTransport
  access: { token(): Promise<string>; drop(): void }
  worker: NodeWorker
  /** What the doctor found when it ran each backend. */
  backends: readonly BackendReport[]
  machine: () => { cpu: number; vcpus: number; memoryMb: number; memoryFreeMb: number }
  slots: number
  clock: Clock
  log: Log
  /** After this a stream is replaced by a new one. */
  maxStreamMs?: number
  /** The first welcome is there, and the runs that it says are over have ended here. */
  onFirstWelcome?: () => void
  /** A stream that brings no welcome within this time is given up. */
  welcomeMs?: number
  /** Before the next try, after so many failures in a row. */
  delay?: (failures: number) => number
}

const READ_CHUNK = 256 * 1024
/** A control plane has no more reads open at a node. */
const MOST_READS = 1000
/** Answers that wait for a control plane that does not read its stream; it takes none that is longer than half of it. */
const MOST_PASSING_BYTES = 128 * 1024 * 1024
const MOST_HEARTBEAT_SECONDS = 3600
const MAX_STREAM_MS = 30 * 60_000
const WELCOME_MS = 30_000
/** A stream that ends sooner is a failure, whatever its end says: the next one is dialled after a pause. */
const SHORT_STREAM_MS = 1000

export interface Tunnel {
  /** Settles when the tunnel is given up: after `close`, or where it can never work. */
  done: Promise<void>
  /** The store has something to report; `soon`: a caller waits for it. */
  reportSoon(soon: boolean): void
  /** What is said in a turn while it is said; lost where no stream is open. */
  said(piece: Piece): void
  /** Resolves when the control plane has heard everything, or the time is over. */
  flushed(ms: number): Promise<void>
  /** Takes no more orders; the control plane has them for the next process of this node. */
  leaveOrders(): Promise<void>
  close(): Promise<void>
}

type NodeChannel = Channel<NodeFrame, ControlFrame>

interface OpenTunnel {
  readonly streamId: string
  readonly channel: NodeChannel
  readonly out: ReturnType<typeof outbox>
  readonly orders: Inbox<ControlFrame>
  readonly leaving: AbortController
  /** Of the stream at hand. */
  current: AbortController | undefined
  welcomed: boolean
  /** On this stream or an earlier one. */
  hasMet: boolean
  /** The control plane takes bundles. */
  bundles: boolean
  /** It takes `parked` frames. */
  takesParked: boolean
  /** Reads that are being answered. */
  reads: number
  /** What the control plane said last of new work; undefined before that. */
  drained: boolean | undefined
}

/** The node's end: dials, reports what its store holds, executes commands, and dials again (docs/spec/runtime.md §14). */
export function openTunnel(options: TunnelOptions): Tunnel {
  const { worker, clock, log } = options
  const leaving = new AbortController()
  const channel: NodeChannel = frameChannel<NodeFrame, ControlFrame>({
    ackOnly,
    weigh,
    mostPassing: MOST_PASSING_BYTES,
    onAcked: seq => out.acked(seq),
  })
  const out = outbox(
    {
      read: async (afterId, most) => understood(await worker.pendingReports(afterId, most), tunnel),
      remove: worker.acknowledged,
    },
    () => channel,
    log,
    {
      on: () => tunnel.bundles,
      weigh,
      bundle: frames => create(NodeFrameSchema, { body: { case: 'bundle', value: { frames } } }),
    },
  )
  const orders = inbox<ControlFrame>(
    async batch => {
      await worker.handle(batch)
      channel.done(Number(batch.at(-1)?.seq ?? 0))
    },
    { log, weigh: frameWeight },
  )
  worker.asks.onAsk(ask => void channel.pass(askFrame(ask)))

  const tunnel: OpenTunnel = {
    streamId: crypto.randomUUID(),
    channel,
    out,
    orders,
    leaving,
    current: undefined,
    welcomed: false,
    hasMet: false,
    bundles: false,
    takesParked: false,
    reads: 0,
    drained: undefined,
  }
  const done = dial(options, tunnel)
  done.catch(() => undefined)
  return {
    done,
    reportSoon: out.wake,
    said({ delta, ...place }) {
      const value = { ...place, delta: utf8(delta) }
      channel.pass(create(NodeFrameSchema, { body: { case: 'sessionDelta', value } }))
    },
    async flushed(ms) {
      const until = clock.monotonic() + ms
      while (clock.monotonic() < until && !leaving.signal.aborted) {
        if (channel.unacknowledged === 0 && (await worker.pendingReports(0, 1)).length === 0) return
        await sleep(20)
      }
    },
    async leaveOrders() {
      orders.close()
      await orders.idle()
    },
    async close() {
      leaving.abort()
      tunnel.current?.abort(new TunnelRefusal('closing', 'this node is stopping'))
      orders.close()
      await done.catch(() => undefined)
      await orders.idle()
      await out.close()
    },
  }
}

/** Streams one after another, until the node leaves or can never work with this control plane. */
async function dial(options: TunnelOptions, tunnel: OpenTunnel): Promise<void> {
  const { access, log, clock, delay = failures => redialDelay(failures, Math.random) } = options
  const leaving = tunnel.leaving.signal
  let failures = 0
  while (!leaving.aborted) {
    const openedMs = clock.monotonic()
    try {
      await stream(options, tunnel)
      failures = clock.monotonic() - openedMs < SHORT_STREAM_MS ? failures + 1 : 0
      if (failures > 0) await sleep(delay(failures), leaving).catch(() => undefined)
    } catch (error) {
      if (leaving.aborted) return
      const refusal = error instanceof TunnelRefusal ? error : undefined
      if (refusal?.code === 'unknown_protocol' || refusal?.code === 'removed') {
        // There is nothing left to tell.
        tunnel.leaving.abort()
        throw error
      }
      if (refusal?.code === 'unauthenticated') access.drop()
      failures = tunnel.welcomed ? 1 : failures + 1
      const waitMs = delay(failures)
      log.warn('the tunnel is down and is dialled again', {
        reason: refusal?.code ?? 'error',
        error: refusal?.message ?? error,
        waitMs,
      })
      await sleep(waitMs, leaving).catch(() => undefined)
    }
  }
}

/** One stream, until it breaks (throws), ends, or has been open for long; then the next one may be opened beside it. */
async function stream(options: TunnelOptions, tunnel: OpenTunnel): Promise<void> {
  const { transport, access, worker, maxStreamMs = MAX_STREAM_MS, welcomeMs = WELCOME_MS } = options
  const { channel, out, leaving } = tunnel
  tunnel.welcomed = false
  const token = await access.token()
  leaving.signal.throwIfAborted()
  const stop = new AbortController()
  const before = tunnel.current
  tunnel.current = stop
  const welcome = Promise.withResolvers<number>()
  welcome.promise.catch(() => undefined)
  const hello = await helloFrame(options, tunnel, channel)
  async function* outgoing(): AsyncGenerator<NodeFrame> {
    yield hello
    const seen = await welcome.promise
    for (const ask of worker.asks.open()) yield askFrame(ask)
    yield* channel.open(seen, stop.signal)
  }
  const pulse = heartbeats(options, channel, stop)
  const aged = Promise.withResolvers<void>()
  const timer = setTimeout(aged.resolve, maxStreamMs)
  // What stands between may take a stream and answer its pings, and pass nothing on.
  const unwelcomed = setTimeout(() => {
    const words = `the control plane did not welcome this node within ${welcomeMs / 1000} s: it is busy, or a proxy between them holds back what is sent`
    stop.abort(new TunnelRefusal('closing', words))
  }, welcomeMs)
  async function listen(): Promise<void> {
    let first = true
    for await (const frame of transport.connect(token, outgoing(), stop.signal)) {
      pulse.heard()
      if (first) {
        if (frame.body.case !== 'welcome') throw new TunnelRefusal('bad_frame', 'expected a welcome first')
        first = false
        const { lastSeenSeq, heartbeatSeconds, lostSeconds, bundles, parked, over } = frame.body.value
        if (!tunnel.hasMet) {
          await worker.over(over)
          options.onFirstWelcome?.()
        }
        tunnel.welcomed = true
        tunnel.hasMet = true
        tunnel.bundles = bundles
        tunnel.takesParked = parked
        clearTimeout(unwelcomed)
        welcome.resolve(Number(lastSeenSeq))
        before?.abort(new TunnelRefusal('replaced', 'a newer stream is open'))
        out.wake()
        const everySeconds = Math.min(Math.max(1, heartbeatSeconds), MOST_HEARTBEAT_SECONDS)
        pulse.start(everySeconds * 1000, Math.max(1, lostSeconds) * 1000)
        continue
      }
      const fresh = channel.receive(frame)
      if (fresh) await takeFrame(options, tunnel, fresh)
    }
  }
  const listening = listen().finally(() => {
    clearTimeout(timer)
    clearTimeout(unwelcomed)
    pulse.stop()
    welcome.reject(stop.signal.reason ?? new TunnelRefusal('closing', 'the stream ended'))
    stop.abort()
  })
  listening.catch(() => undefined)
  await Promise.race([listening, aged.promise])
}

/** Heartbeats of one stream, which they end when nothing was heard for too long. */
function heartbeats(options: TunnelOptions, channel: NodeChannel, stop: AbortController) {
  const { clock } = options
  let heard = clock.monotonic()
  let watch: ReturnType<typeof setInterval> | undefined
  return {
    heard(): void {
      heard = clock.monotonic()
    },
    start(everyMs: number, lostMs: number): void {
      watch = setInterval(() => {
        if (clock.monotonic() - heard > lostMs) stop.abort(new TunnelRefusal('closing', 'nothing was heard'))
        else beat(options, channel, lostMs)
      }, everyMs)
      beat(options, channel, lostMs)
    },
    stop: () => clearInterval(watch),
  }
}

type Reports = Awaited<ReturnType<NodeWorker['pendingReports']>>

/** Reports that the control plane takes: before its first word none behind a `parked` frame, and where it takes no such frame, an empty one. */
function understood(rows: Reports, { hasMet, takesParked }: Pick<OpenTunnel, 'hasMet' | 'takesParked'>): Reports {
  if (takesParked) return rows
  const first = rows.findIndex(({ frame }) => frame.body.case === 'parked')
  if (!hasMet) return first < 0 ? rows : rows.slice(0, first)
  return rows.map(row => (row.frame.body.case === 'parked' ? { ...row, frame: ackOnly() } : row))
}

/** What the control plane sent: answered here, or put with the other orders. */
async function takeFrame(
  options: TunnelOptions,
  tunnel: Pick<OpenTunnel, 'channel' | 'orders' | 'reads' | 'drained'>,
  frame: ControlFrame,
): Promise<void> {
  const { channel, orders } = tunnel
  const { worker, log } = options
  const { body } = frame
  switch (body.case) {
    case 'ping':
      channel.pass(create(NodeFrameSchema, { body: { case: 'pong', value: { n: body.value.n } } }))
      return
    case 'readRequest':
      if (tunnel.reads >= MOST_READS) return
      tunnel.reads++
      void answerRead(options, channel, body.value).finally(() => tunnel.reads--)
      return
    case 'budgetGrant':
      worker.asks.granted(body.value)
      return
    case 'limits':
      void worker
        .limits(body.value.agents)
        .catch((error: unknown) => log.error('limits could not be kept; they come again', { error }))
      return
    case 'drain':
      if (tunnel.drained === body.value.on) return
      tunnel.drained = body.value.on
      log.info(body.value.on ? 'this node is given no new work' : 'this node is given work again')
      return
    case 'assign':
    case 'cancel':
    case 'approval':
    case 'signal':
    case 'secretPut':
    case 'sessionStop':
    case 'childRefused':
      if (frame.seq === 0n) throw new TunnelRefusal('bad_frame', `an order without a number: ${body.case}`)
      return orders.put(frame)
    case 'ackOnly':
      return
    default:
      throw new TunnelRefusal(
        'bad_frame',
        `this version does not know what to do with ${body.case ?? 'an empty frame'}`,
      )
  }
}

/** Answers a read of the control plane, piece by piece. What finds no room ends the answer: the control plane reads none now. */
async function answerRead(
  { worker, log }: Pick<TunnelOptions, 'worker' | 'log'>,
  channel: NodeChannel,
  request: ReadRequest,
): Promise<void> {
  const { requestId } = request
  const say = (status: number, body: Uint8Array, last: boolean) =>
    channel.pass(create(NodeFrameSchema, { body: { case: 'readResponse', value: { requestId, status, body, last } } }))
  try {
    const { status, body } = await worker.read(request)
    for (let at = 0; at === 0 || at < body.length; at += READ_CHUNK) {
      if (!say(status, body.subarray(at, at + READ_CHUNK), at + READ_CHUNK >= body.length)) return
    }
  } catch (error) {
    log.error('a read could not be answered', { error, kind: request.kind })
    say(500, new Uint8Array(), true)
  }
}

/** The first frame of a stream: who this node is, what it can do, and which runs it has. */
async function helloFrame(
  { worker, machine, slots, backends }: TunnelOptions,
  { streamId, hasMet }: Pick<OpenTunnel, 'streamId' | 'hasMet'>,
  channel: Pick<NodeChannel, 'seen'>,
): Promise<NodeFrame> {
  const { vcpus, memoryMb } = machine()
  const [held, storeId] = [await worker.held(), await worker.storeId()]
  return create(NodeFrameSchema, {
    body: {
      case: 'hello',
      value: {
        nodeId: worker.nodeId,
        streamId,
        lastSeenSeq: BigInt(channel.seen),
        held,
        proto: PROTO,
        slots,
        vcpus,
        storeId,
        first: !hasMet,
        limits: true,
        backends: [...backends],
        memoryMb: BigInt(memoryMb),
        version: VERSION,
      },
    },
  })
}

/** A heartbeat; questions that are still open are asked again with it. */
function beat({ worker, machine, slots, log }: TunnelOptions, channel: NodeChannel, lostMs: number): void {
  for (const ask of worker.asks.open()) channel.pass(askFrame(ask))
  void worker.beat(lostMs).catch(error => log.warn('nodes that share this store could not be checked', { error }))
  const active = worker.active()
  const { cpu, memoryFreeMb } = machine()
  const value = {
    activeRuns: active,
    freeSlots: Math.max(0, slots - active),
    cpu,
    memoryFreeMb: BigInt(memoryFreeMb),
  }
  channel.pass(create(NodeFrameSchema, { body: { case: 'heartbeat', value } }))
}

const askFrame = (value: BudgetRequest) => create(NodeFrameSchema, { body: { case: 'budgetAsk', value } })

const ackOnly = () => create(NodeFrameSchema, { body: { case: 'ackOnly', value: {} } })

/** About what a frame takes: most are an event; what a run gives to another can be long, and the models of an end many. */
function weigh({ body }: NodeFrame): number {
  if (body.case === 'bundle') return body.value.frames.reduce((sum, frame) => sum + weigh(frame), 100)
  if (body.case === 'childAsk') return 600 + body.value.inputSealed.length
  if (body.case === 'readResponse') return 600 + body.value.body.length
  if (body.case !== 'complete') return 600
  return 1000 + body.value.models.reduce((sum, model) => sum + 3 * model.length + 4, 0)
}
