import fc from 'fast-check'
import { expect, it } from 'vitest'
import { rateGates } from './rate-gate.ts'

/** Time that passes when nothing else can happen: the earliest of those who wait is woken, and it is then that time. */
function virtualTime() {
  let now = 0
  let order = 0
  const waiting: { at: number; order: number; wake: () => void }[] = []
  return {
    monotonic: () => now,
    wait: (ms: number) => new Promise<void>(wake => waiting.push({ at: now + ms, order: order++, wake })),
    /** Lets time pass until `done` settles. */
    async until<T>(done: Promise<T>): Promise<T> {
      let settled = false
      void done.finally(() => {
        settled = true
      })
      for (;;) {
        // Everything that can happen now, happens first.
        for (let turns = 0; turns < 50 && !settled; turns++) await Promise.resolve()
        if (settled) return done
        const next = waiting.toSorted((a, b) => a.at - b.at || a.order - b.order)[0]
        if (!next) throw new Error('everybody waits for something that cannot happen')
        waiting.splice(waiting.indexOf(next), 1)
        now = Math.max(now, next.at)
        next.wake()
      }
    },
  }
}

const signal = new AbortController().signal

it('never lets more through than its rule, keeps their order, and leaves nobody behind', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        concurrent: fc.integer({ min: 1, max: 8 }),
        perSecond: fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }),
      }),
      fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 1, maxLength: 40 }),
      async ({ concurrent, perSecond }, durations) => {
        const time = virtualTime()
        const gates = rateGates(time)
        const rule = { concurrent, ...(perSecond !== undefined && { perSecond }) }
        const starts: number[] = []
        const order: number[] = []
        let active = 0
        let most = 0
        const all = durations.map(async (ms, at) => {
          const leave = await gates.enter('one', rule, signal)
          starts.push(time.monotonic())
          order.push(at)
          most = Math.max(most, ++active)
          await time.wait(ms)
          active--
          leave()
        })
        await time.until(Promise.all(all))
        expect(most).toBeLessThanOrEqual(concurrent)
        expect(order).toEqual(durations.map((_, at) => at))
        const apart = starts.slice(1).map((at, index) => at - starts[index]!)
        if (perSecond !== undefined) for (const ms of apart) expect(ms).toBeGreaterThanOrEqual(1000 / perSecond - 1e-6)
      },
    ),
    { numRuns: 60 },
  )
})

it('holds everybody of an install back when the vendor asks for a pause, and nobody else', async () => {
  const time = virtualTime()
  const gates = rateGates(time)
  const rule = { concurrent: 5 }
  gates.pause('one', 4000)
  const starts = await time.until(
    Promise.all(
      ['one', 'two', 'one'].map(async install => {
        await gates.enter(install, rule, signal)
        return [install, time.monotonic()] as const
      }),
    ),
  )
  expect(starts).toEqual([
    ['one', 4000],
    ['two', 0],
    ['one', 4000],
  ])
})

it('refuses at once where the vendor asks for a pause that no call waits for, and lets the next through after it', async () => {
  const time = virtualTime()
  const gates = rateGates(time)
  const rule = { concurrent: 1 }
  gates.pause('one', 3_600_000)
  const refused = gates.enter('one', rule, signal)
  await expect(refused).rejects.toMatchObject({
    message: 'not sent: the vendor asked for a pause, which lasts 30 s more',
    later: true,
    declined: true,
    retryAfterMs: 30_000,
  })
  await time.until(time.wait(25_000))
  await time.until(gates.enter('one', rule, signal))
  expect(time.monotonic()).toBe(30_000)
})

it('lets the next one through when somebody gives up waiting', async () => {
  const time = virtualTime()
  const gates = rateGates(time)
  const rule = { concurrent: 1 }
  const leave = await gates.enter('one', rule, signal)
  const impatient = new AbortController()
  const gaveUp = gates.enter('one', rule, impatient.signal)
  const patient = gates.enter('one', rule, signal)
  await Promise.resolve()
  impatient.abort(new Error('no longer needed'))
  await expect(gaveUp).rejects.toThrow('no longer needed')
  leave()
  expect(typeof (await time.until(patient))).toBe('function')
})
