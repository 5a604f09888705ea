import { fromBinary, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { frameChannel } from '../../shared/tunnel/channel.ts'
import { type NodeFrame, NodeFrameSchema } from '../../shared/tunnel/gateway.gen.ts'
import { TunnelRefusal } from '../../shared/tunnel/protocol.ts'
import { type Target, target } from './target.ts'

interface Said {
  seq: bigint
  ack: bigint
  body: { case: string | undefined; value?: number }
}
/** What the road does to the next frame, or what the ends do. */
type Step = readonly ['say' | 'pass' | 'repeat' | 'lose' | 'swap' | 'done', number]

const end = () =>
  frameChannel<Said, Said>({
    ackOnly: () => ({ seq: 0n, ack: 0n, body: { case: 'ack' } }),
    weigh: () => 1,
    mostFrames: 1000,
  })

/** What a stream has ready, without waiting for more. */
async function ready(stream: AsyncGenerator<Said>): Promise<Said[]> {
  const frames: Said[] = []
  for (;;) {
    const next = await Promise.race([
      stream.next(),
      new Promise<undefined>(resolve => setImmediate(() => resolve(undefined))),
    ])
    if (next === undefined || next.done) return frames
    frames.push({ ...next.value, body: { ...next.value.body } })
  }
}

/** Whatever the road repeats, loses or swaps: what arrives is what was said, in its order, each once; a gap is refused, never passed over. */
async function travel(steps: readonly Step[]): Promise<void> {
  const [sender, receiver] = [end(), end()]
  const arrived: number[] = []
  let said = 0
  const take = (frame: Said): boolean => {
    try {
      const fresh = receiver.receive({ ...frame })
      if (fresh?.body.value !== undefined) arrived.push(fresh.body.value)
      return true
    } catch (error) {
      if (error instanceof TunnelRefusal) return false
      throw error
    }
  }
  /** A stream from where the receiver stopped seeing, over a road that does this to it; a refusal ends it. */
  async function dial(what: string, at: number): Promise<void> {
    const gone = new AbortController()
    const frames = await ready(sender.open(receiver.seen, gone.signal))
    gone.abort()
    // The first frame that ever reaches an end says where its life begins: a stream loses its tail, never that one alone.
    const first = receiver.seen === 0 ? 1 : 0
    const place = Math.min(frames.length, first + (frames.length > first ? at % (frames.length - first) : 0))
    const road = [...frames]
    if (what === 'repeat' && frames[place] !== undefined) road.splice(place, 0, frames[place]!)
    if (what === 'lose') road.splice(place, 1)
    if (what === 'swap' && frames.length > place + 1) [road[place], road[place + 1]] = [road[place + 1]!, road[place]!]
    for (const frame of road) if (!take(frame)) return
  }
  for (const [what, n] of steps) {
    if (what === 'say')
      for (let more = n % 4; more >= 0; more--)
        await sender.send({ seq: 0n, ack: 0n, body: { case: 'x', value: ++said } })
    else if (what === 'done') {
      receiver.done(receiver.seen)
      sender.receive({ seq: 0n, ack: BigInt(receiver.seen), body: { case: 'ack' } })
    } else await dial(what, n)
    const right = arrived.every((value, at) => value === at + 1)
    if (!right) throw new Error(`what arrived is ${arrived.join(' ')}`)
  }
  await dial('pass', 0)
  if (arrived.length !== said) throw new Error(`${arrived.length} of ${said} frames arrived`)
}

/** Any bytes are a frame or an error that says so; a frame that was read is written and read again as the same. */
function readFrame(bytes: readonly number[]): void {
  let frame: NodeFrame
  try {
    frame = fromBinary(NodeFrameSchema, Uint8Array.from(bytes))
  } catch (error) {
    // The transport turns whatever is thrown here into a refusal of the stream.
    if (error instanceof Error) return
    throw error
  }
  const again = fromBinary(NodeFrameSchema, toBinary(NodeFrameSchema, frame))
  if (again.seq !== frame.seq || again.body.case !== frame.body.case)
    throw new Error('a frame changed when it was written')
}

interface Case {
  steps: readonly Step[]
  bytes: readonly number[]
}

export const frames: Target = target<Case>({
  name: 'frames',
  cases: fc.record({
    steps: fc.array(
      fc.tuple(
        fc.constantFrom('say', 'say', 'pass', 'repeat', 'lose', 'swap', 'done'),
        fc.nat(30),
      ) as fc.Arbitrary<Step>,
      { minLength: 1, maxLength: 25 },
    ),
    bytes: fc.array(fc.oneof(fc.constantFrom(8, 16, 82, 90, 98, 106, 114, 0, 1, 2), fc.nat(255)), { maxLength: 40 }),
  }),
  async attempt({ steps, bytes }) {
    readFrame(bytes)
    await travel(steps)
  },
})
