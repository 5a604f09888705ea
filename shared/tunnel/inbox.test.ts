import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createLog, silentLog } from '../log/log.ts'
import { inbox } from './inbox.ts'
import { frameWeight } from './protocol.ts'

it('hands on in one batch what a stream gives one by one in one turn of the loop', async () => {
  const batches: number[][] = []
  const box = inbox<number>(async batch => void batches.push([...batch]), { log: silentLog() })
  for (let item = 0; item < 10; item++) await box.put(item)
  await box.idle()
  expect(batches).toEqual([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]])
})

it('hands on everything once and in order, and lets its sender wait when it is full', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat({ max: 5 }), { maxLength: 40 }),
      fc.integer({ min: 1, max: 8 }),
      async (sizes, most) => {
        const handled: number[] = []
        let heaviest = 0
        const box = inbox<{ at: number; size: number }>(
          async batch => {
            const weight = batch.slice(0, -1).reduce((sum, { size }) => sum + size, 0)
            heaviest = Math.max(heaviest, weight)
            handled.push(...batch.map(({ at }) => at))
          },
          { log: silentLog(), weigh: ({ size }) => size, most },
        )
        for (const [at, size] of sizes.entries()) await box.put({ at, size })
        await box.idle()
        expect(handled).toEqual(sizes.map((_, at) => at))
        // All but the last of a batch had room.
        expect(heaviest).toBeLessThan(most)
      },
    ),
    { numRuns: 50 },
  )
})

it('holds no more bytes of frames than fit, while nothing is handled', async () => {
  const frame = { body: { value: { runId: 'r', inputSealed: new Uint8Array(4 * 1024 * 1024) } } }
  const box = inbox<typeof frame>(() => new Promise(() => undefined), { log: silentLog(), weigh: frameWeight })
  let taken = 0
  void (async () => {
    for (; taken < 100; taken++) await box.put(frame)
  })()
  await new Promise(resolve => setTimeout(resolve, 100))
  // 2048 times 8 KiB, for the batch at hand and for what waits behind it.
  expect(taken).toBeLessThan(10)
  box.close()
})

it('logs nothing of a batch that fails because it was closed meanwhile, and takes no more', async () => {
  const lines: string[] = []
  const log = createLog({ filter: { all: 'warn', byTarget: new Map() }, write: line => lines.push(line) })
  const [begun, handled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const box = inbox<number>(
    () => {
      begun.resolve()
      return handled.promise
    },
    { log, most: 1 },
  )
  await box.put(1)
  await begun.promise
  box.close()
  handled.reject(new Error('the store is closed'))
  await box.idle()
  // A stream goes on being read, for what is acknowledged in it.
  for (const late of [2, 3]) await box.put(late)
  expect(lines).toEqual([])
})

it('says once that a batch cannot be kept, however often it is tried', async () => {
  const lines: string[] = []
  const log = createLog({ filter: { all: 'warn', byTarget: new Map() }, write: line => lines.push(line) })
  let tries = 0
  const box = inbox<number>(
    async () => {
      if (++tries < 3) throw new Error('SQLITE_FULL: database or disk is full')
    },
    { log, most: 1 },
  )
  await box.put(1)
  await box.idle()
  expect(tries).toBe(3)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('SQLITE_FULL')
})
