import { TunnelRefusal } from './protocol.ts'

/** What both kinds of frames have. */
export interface Frame {
  seq: bigint
  ack: bigint
  body: { case: string | undefined }
}

export interface ChannelOptions<Out extends Frame> {
  /** A frame that carries nothing but an acknowledgement. */
  ackOnly: () => Out
  /** About how many bytes a frame holds in memory. */
  weigh: (frame: Out) => number
  /** The other end has acknowledged everything up to this number. */
  onAcked?: (seq: number) => void
  /** The number before the first frame that is sent: what the other end has seen from an earlier life of this end. */
  sentBefore?: number
  mostFrames?: number
  /** Of what goes out without a number and is not read by the other end; beyond that it is dropped. */
  mostPassing?: number
}

interface Kept<Out> {
  seq: number
  frame: Out
  weight: number
}

export type Channel<Out extends Frame, In extends Frame> = ReturnType<typeof frameChannel<Out, In>>

const MOST_WEIGHT = 16 * 1024 * 1024

/** The frames that were sent and are not acknowledged, in order, and how many of them are on the stream at hand. */
function sentFrames<Out extends Frame>(options: ChannelOptions<Out>) {
  const { weigh, onAcked, mostFrames = 4096 } = options
  let sent = options.sentBefore ?? 0
  const kept: Kept<Out>[] = []
  let weight = 0
  let written = 0
  const waiting: (() => void)[] = []
  const hasRoom = () => kept.length === 0 || (kept.length < mostFrames && weight < MOST_WEIGHT)

  return {
    /** Resolves with the frame's number as soon as there is room for it. */
    async add(frame: Out): Promise<number> {
      while (!hasRoom()) await new Promise<void>(resolve => waiting.push(resolve))
      const seq = ++sent
      frame.seq = BigInt(seq)
      const size = weigh(frame)
      kept.push({ seq, frame, weight: size })
      weight += size
      return seq
    },
    acknowledged(seq: number): void {
      let dropped = 0
      while (kept[dropped] !== undefined && kept[dropped]!.seq <= seq) weight -= kept[dropped++]!.weight
      if (dropped === 0) return
      kept.splice(0, dropped)
      written = Math.max(0, written - dropped)
      onAcked?.(seq)
      while (waiting.length > 0 && hasRoom()) waiting.shift()?.()
    },
    /** For a new stream: all of them go out again. */
    rewind(): void {
      written = 0
    },
    /** The next one for the stream at hand, which is then on it. */
    next(): Out | undefined {
      const { frame } = kept[written] ?? {}
      if (frame !== undefined) written++
      return frame
    },
    get last() {
      return sent
    },
    get count() {
      return kept.length
    },
  }
}

/** Frames without a number: they are for the stream at hand, and no more of them wait than `most` weighs. */
function passingFrames<Out extends Frame>({ weigh, mostPassing = Number.POSITIVE_INFINITY }: ChannelOptions<Out>) {
  let waiting: Out[] = []
  let weight = 0
  return {
    add(frame: Out): boolean {
      const own = weigh(frame)
      if (waiting.length > 0 && weight + own > mostPassing) return false
      waiting.push(frame)
      weight += own
      return true
    },
    next(): Out | undefined {
      const frame = waiting.shift()
      if (frame) weight -= weigh(frame)
      return frame
    },
    clear(): void {
      waiting = []
      weight = 0
    },
  }
}

/** The numbers that came in: each once, and none left out. */
function receivedFrames() {
  let last: number | undefined
  let duplicates = 0
  return {
    /** Whether it is the next one; not, where it was here before. Throws where one is missing before it. */
    take(seq: number): boolean {
      // Everything before the first one that reaches a new life of this end was acted on by an earlier one.
      last ??= seq - 1
      if (seq <= last) {
        duplicates++
        return false
      }
      if (seq !== last + 1) throw new TunnelRefusal('out_of_order', `frame ${seq} came after frame ${last}`)
      last = seq
      return true
    },
    get last() {
      return last ?? 0
    },
    get duplicates() {
      return duplicates
    },
  }
}

/**
 * One direction of numbered frames and the acknowledgements of the other (docs/spec/runtime.md §14). It outlives streams: what was sent
 * is kept until the other end has acted on it, and goes out again on the next stream from where the other end stopped seeing.
 * What does not fit waits at `send`, so a slow reader slows its writer and nothing piles up.
 */
export function frameChannel<Out extends Frame, In extends Frame>(options: ChannelOptions<Out>) {
  const frames = sentFrames(options)
  const passing = passingFrames(options)
  const received = receivedFrames()
  let streaming: object | undefined
  let processed = 0
  let acked = 0
  let wakeWriter = () => {}

  return {
    /** Numbers the frame and keeps it until it is acknowledged; resolves with its number as soon as there is room for it. */
    async send(frame: Out): Promise<number> {
      const seq = await frames.add(frame)
      wakeWriter()
      return seq
    },

    /** Sends without a number: it is lost with the stream, and dropped where there is none or where the other end does not read. */
    pass(frame: Out): boolean {
      if (streaming === undefined || !passing.add(frame)) return false
      wakeWriter()
      return true
    },

    /**
     * The frames of a new stream to an end that has seen everything up to `seen`, until `gone`. A stream that was open before
     * ends: there is one at a time.
     */
    async *open(seen: number, gone: AbortSignal): AsyncGenerator<Out> {
      if (seen > frames.last)
        throw new TunnelRefusal('out_of_order', `frame ${seen} was seen, and only ${frames.last} were sent`)
      frames.acknowledged(seen)
      const own = {}
      streaming = own
      frames.rewind()
      passing.clear()
      acked = 0
      wakeWriter()
      const onGone = () => wakeWriter()
      gone.addEventListener('abort', onGone, { once: true })
      try {
        while (streaming === own && !gone.aborted) {
          const next = passing.next() ?? frames.next() ?? (acked < processed ? options.ackOnly() : undefined)
          if (next === undefined) {
            await new Promise<void>(resolve => {
              wakeWriter = resolve
            })
            continue
          }
          next.ack = BigInt(processed)
          acked = processed
          yield next
        }
      } finally {
        gone.removeEventListener('abort', onGone)
        if (streaming === own) streaming = undefined
      }
    },

    /** A frame as it comes in; undefined for one that was here before. Throws where one is missing before it. */
    receive(frame: In): In | undefined {
      frames.acknowledged(Number(frame.ack))
      const seq = Number(frame.seq)
      return seq === 0 || received.take(seq) ? frame : undefined
    },

    /** Everything up to this number has been acted on, durably: the other end may forget it. */
    done(seq: number): void {
      if (seq <= processed) return
      processed = seq
      wakeWriter()
    },

    /** The last number that came in. */
    get seen() {
      return received.last
    },
    get unacknowledged() {
      return frames.count
    },
    get duplicates() {
      return received.duplicates
    },
  }
}
