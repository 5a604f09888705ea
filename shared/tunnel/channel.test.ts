import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { frameChannel } from './channel.ts'
import { TunnelRefusal } from './protocol.ts'

interface Said {
  seq: bigint
  ack: bigint
  body: { case: 'said' | 'ack'; value?: number }
}
const said = (value: number): Said => ({ seq: 0n, ack: 0n, body: { case: 'said', value } })
const copyOf = (frame: Said): Said => ({ ...frame, body: { ...frame.body } })
const end = (
  more: { mostFrames?: number; mostPassing?: number; sentBefore?: number; onAcked?: (seq: number) => void } = {},
) =>
  frameChannel<Said, Said>({
    ackOnly: () => ({ seq: 0n, ack: 0n, body: { case: 'ack' } }),
    weigh: () => 1,
    ...more,
  })

/** The frames that a stream has ready now. */
async function ready(stream: AsyncGenerator<Said>): Promise<Said[]> {
  const found: Said[] = []
  for (;;) {
    const next = await Promise.race([
      stream.next(),
      new Promise<undefined>(resolve => setImmediate(resolve, undefined)),
    ])
    if (next === undefined || next.done) return found
    found.push(copyOf(next.value))
  }
}

describe('a channel', () => {
  it('delivers each frame once and in order, however often streams break and frames are repeated', async () => {
    const streams = fc.array(
      fc.record({
        sends: fc.nat(4),
        arrive: fc.nat(6),
        handled: fc.nat(6),
        repeats: fc.array(fc.nat(5), { maxLength: 3 }),
      }),
      { minLength: 1, maxLength: 12 },
    )
    await fc.assert(
      fc.asyncProperty(streams, async plan => {
        const [sender, receiver] = [end(), end()]
        const arrived: number[] = []
        let count = 0
        let last = 0
        for (const { sends, arrive, handled, repeats } of [
          ...plan,
          { sends: 0, arrive: 999, handled: 999, repeats: [] },
        ]) {
          for (let i = 0; i < sends; i++) await sender.send(said(++count))
          const gone = new AbortController()
          const frames = await ready(sender.open(receiver.seen, gone.signal))
          const passed = frames.slice(0, arrive)
          const delivered = [...passed, ...repeats.flatMap(at => (passed[at] ? [passed[at]] : []))]
          for (const frame of delivered) {
            const fresh = receiver.receive(copyOf(frame))
            if (fresh?.body.value !== undefined) {
              arrived.push(fresh.body.value)
              last = Number(fresh.seq)
            }
          }
          if (last > 0 && handled > 0) receiver.done(Math.min(last, handled * 3))
          const back = await ready(receiver.open(0, gone.signal))
          for (const frame of back) sender.receive(frame)
          gone.abort()
        }
        expect(arrived).toEqual(Array.from({ length: count }, (_, at) => at + 1))
      }),
      { numRuns: 60 },
    )
  })

  it('refuses a frame with one missing before it', () => {
    const receiver = end()
    expect(receiver.receive({ ...said(1), seq: 1n })).toBeDefined()
    expect(receiver.receive({ ...said(1), seq: 1n })).toBeUndefined()
    expect(receiver.duplicates).toBe(1)
    expect(() => receiver.receive({ ...said(3), seq: 3n })).toThrow(TunnelRefusal)
  })

  it('makes a sender wait when nothing is acknowledged, and lets it go on when something is', async () => {
    const sender = end({ mostFrames: 2 })
    await sender.send(said(1))
    await sender.send(said(2))
    let third: number | undefined
    const sending = sender.send(said(3)).then(seq => {
      third = seq
    })
    await new Promise(resolve => setImmediate(resolve))
    expect(third).toBeUndefined()
    sender.receive({ seq: 0n, ack: 1n, body: { case: 'ack' } })
    await sending
    expect([third, sender.unacknowledged]).toEqual([3, 2])
  })

  it('goes on in a new life where the other end stopped seeing', async () => {
    const sender = end({ sentBefore: 41 })
    expect(await sender.send(said(1))).toBe(42)
    const receiver = end()
    expect(receiver.receive({ ...said(1), seq: 42n })).toBeDefined()
    await expect(end().open(5, new AbortController().signal).next()).rejects.toThrow('only 0 were sent')
  })

  it('acknowledges only what was acted on', async () => {
    const receiver = end()
    receiver.receive({ ...said(1), seq: 1n })
    const gone = new AbortController()
    const stream = receiver.open(0, gone.signal)
    expect(await ready(stream)).toEqual([])
    gone.abort()
    receiver.done(1)
    expect(await ready(receiver.open(0, new AbortController().signal))).toMatchObject([
      { ack: 1n, body: { case: 'ack' } },
    ])
  })

  it('keeps no more of what has no number than it may for an end that does not read', async () => {
    const sender = end({ mostPassing: 3 })
    const stream = sender.open(0, new AbortController().signal)
    const first = stream.next()
    expect([1, 2, 3, 4, 5].map(value => sender.pass(said(value)))).toEqual([true, true, true, false, false])
    expect((await first).value?.body.value).toBe(1)
    expect(sender.pass(said(6))).toBe(true)
    expect((await ready(stream)).map(({ body }) => body.value)).toEqual([2, 3, 6])
  })
})
