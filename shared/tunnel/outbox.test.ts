import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createLog, silentLog } from '../log/log.ts'
import { frameChannel } from './channel.ts'
import { outbox } from './outbox.ts'

interface Said {
  seq: bigint
  ack: bigint
  body: { case: 'said' | 'many' | 'ack'; size?: number; ids?: number[] }
}
const said = (id: number, size: number): Said => ({ seq: 0n, ack: 0n, body: { case: 'said', ids: [id], size } })
const sizeOf = ({ body: { size = 0 } }: Said) => size
const MOST = 512 * 1024

/** A store of rows of these sizes, an outbox on it, and the end that reads what comes out. */
function room(sizes: readonly number[], takesBundles: boolean) {
  const rows = sizes.map((size, at) => ({ id: at + 1, frame: said(at + 1, size) }))
  const removed: number[] = []
  const channel = frameChannel<Said, Said>({
    ackOnly: () => ({ seq: 0n, ack: 0n, body: { case: 'ack' } }),
    weigh: () => 1,
    onAcked: seq => box.acked(seq),
  })
  const box = outbox<Said, Said>(
    {
      read: async (after, most) => rows.filter(({ id }) => id > after).slice(0, most),
      remove: async upTo => void removed.push(upTo),
    },
    () => channel,
    silentLog(),
    {
      on: () => takesBundles,
      weigh: sizeOf,
      bundle: frames => {
        const ids = frames.flatMap(({ body }) => body.ids ?? [])
        const size = frames.reduce((sum, frame) => sum + sizeOf(frame), 0)
        return { seq: 0n, ack: 0n, body: { case: 'many', ids, size } }
      },
    },
  )
  return { channel, box, removed }
}

async function takeAll({ channel, box }: ReturnType<typeof room>, count: number): Promise<Said[]> {
  const gone = new AbortController()
  const frames: Said[] = []
  box.wake()
  for await (const frame of channel.open(0, gone.signal)) {
    frames.push({ ...frame })
    if (frames.flatMap(({ body }) => body.ids ?? []).length === count) break
  }
  gone.abort()
  return frames
}

it('bundles what is ready, in order, in as few frames as fit, and forgets what has arrived', async () => {
  const size = fc.oneof(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: MOST }))
  await fc.assert(
    fc.asyncProperty(fc.array(size, { minLength: 1, maxLength: 30 }), async sizes => {
      const made = room(sizes, true)
      const frames = await takeAll(made, sizes.length)
      expect(frames.flatMap(({ body }) => body.ids)).toEqual(sizes.map((_, at) => at + 1))
      expect(Math.max(...frames.map(sizeOf))).toBeLessThanOrEqual(MOST)
      // Two that stand beside each other would not have fitted into one.
      for (const [at, frame] of frames.entries()) {
        const first = frames[at + 1]?.body.ids?.[0]
        if (first !== undefined) expect(sizeOf(frame) + (sizes[first - 1] ?? 0)).toBeGreaterThan(MOST)
      }
      made.channel.receive({ seq: 0n, ack: frames.at(-1)?.seq ?? 0n, body: { case: 'ack' } })
      await made.box.close()
      expect(made.removed).toEqual([sizes.length])
    }),
    { numRuns: 25 },
  )
})

it('sends each alone to an end that takes no bundles', async () => {
  const made = room([10, 10, 10], false)
  const frames = await takeAll(made, 3)
  expect(frames.map(({ body }) => body.case)).toEqual(['said', 'said', 'said'])
  await made.box.close()
})

it('logs nothing of a read that fails because it was closed meanwhile: the row stands there for the next process', async () => {
  const lines: string[] = []
  const log = createLog({ filter: { all: 'warn', byTarget: new Map() }, write: line => lines.push(line) })
  const [begun, rows] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()]
  const channel = frameChannel<Said, Said>({
    ackOnly: () => ({ seq: 0n, ack: 0n, body: { case: 'ack' } }),
    weigh: () => 1,
    onAcked: () => undefined,
  })
  const read = () => {
    begun.resolve()
    return rows.promise
  }
  const box = outbox<Said, Said>({ read, remove: async () => undefined }, () => channel, log)
  box.wake()
  await begun.promise
  await box.close()
  rows.reject(new Error('the store is closed'))
  await new Promise(resolve => setImmediate(resolve))
  expect(lines).toEqual([])
})
