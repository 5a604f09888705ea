import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { SandboxLimits } from './driver.ts'
import { burstOf, placesOf, recentStarts, standbyPool, templateShelf } from './standby-pool.ts'

describe('how many shall wait', () => {
  it.each([
    [[], 0],
    [[0], 1],
    [[0, 999], 2],
    [[0, 1000], 1],
    [[0, 5000, 5100, 5200, 9000], 3],
    [[0, 600, 1200, 1800], 2],
  ])('of starts at %j: %i', (starts, wanted) => expect(burstOf(starts)).toBe(wanted))

  it('is forgotten after five minutes', () => {
    expect(recentStarts([0, 1, 299_999, 300_000], 300_000)).toEqual([1, 299_999, 300_000])
  })

  it('is never more than there are places, and the kind that was asked for last has the first choice', () => {
    const [rare, busy, never] = [[5], [0, 1, 2], []]
    expect(placesOf([rare, busy, never], 8)).toEqual([1, 3, 0])
    expect(placesOf([rare, busy, never], 2)).toEqual([1, 1, 0])
    expect(placesOf([rare, busy, never], 0)).toEqual([0, 0, 0])
  })
})

describe('the templates that are held', () => {
  const dropped: string[] = []
  const made: string[] = []
  const shelf = () => templateShelf<string>(async name => void dropped.push(name), 2)
  const make = (name: string) => async () => {
    made.push(name)
    return name
  }
  beforeEach(() => {
    made.length = dropped.length = 0
  })

  it('are those that were used last', async () => {
    const { use, settled } = shelf()
    for (const name of ['a', 'b', 'a', 'c', 'a', 'b']) expect(await use(name, make(name), async one => one)).toBe(name)
    await settled()
    expect(made).toEqual(['a', 'b', 'c', 'b'])
    expect(dropped).toEqual(['b', 'c'])
  })

  it('stay while a machine is made from them', async () => {
    const { use, settled } = shelf()
    const { promise, resolve } = Promise.withResolvers<void>()
    const long = use('a', make('a'), () => promise)
    for (const name of ['b', 'c', 'd']) await use(name, make(name), async () => undefined)
    expect(dropped).toEqual(['b', 'c'])
    resolve()
    await long
    await use('e', make('e'), async () => undefined)
    await settled()
    expect(dropped).toEqual(['b', 'c', 'a'])
  })

  it('are made again after one could not be made', async () => {
    const { use } = shelf()
    const fails = async () => {
      throw new Error('no memory')
    }
    await expect(use('a', fails, async () => undefined)).rejects.toThrow('no memory')
    expect(await use('a', make('a'), async one => one)).toBe('a')
    expect(dropped).toEqual([])
  })
})

describe('a pool', () => {
  const SMALL: SandboxLimits = { memoryMb: 64, cpus: 1, pids: 8, diskMb: 8 }
  const LARGE: SandboxLimits = { ...SMALL, memoryMb: 512 }
  let made: string[]
  let dropped: string[]
  /** The most that were made at the same time. */
  let most: number
  let making: number
  const poolOf = (places: number) =>
    standbyPool<string>({
      places,
      keyOf: ({ memoryMb }) => `${memoryMb}`,
      async make({ memoryMb }) {
        most = Math.max(most, ++making)
        await Promise.resolve()
        making--
        const machine = `${memoryMb}-${made.length}`
        made.push(machine)
        return machine
      },
      drop: async machine => void dropped.push(machine),
    })

  beforeEach(() => {
    vi.useFakeTimers()
    made = []
    dropped = []
    most = 0
    making = 0
  })
  afterEach(() => vi.useRealTimers())

  it('has none before the first start of a kind, and then one more for each that was asked for at once', async () => {
    const pool = poolOf(4)
    expect(pool.take(SMALL)).toBeUndefined()
    await pool.refill()
    expect(made).toEqual(['64-0'])
    const [first, second, third] = [pool.take(SMALL), pool.take(SMALL), pool.take(SMALL)]
    expect([await first, second, third]).toEqual(['64-0', undefined, undefined])
    await pool.refill()
    expect(made.length).toBe(5)
    expect(most).toBe(1)
    await pool.close()
    expect(dropped.toSorted()).toEqual(made.slice(1).toSorted())
  })

  it('gives the places of a kind that is no longer asked for to one that is, and gives all back after five minutes', async () => {
    const pool = poolOf(2)
    await Promise.all([pool.prepare(SMALL), pool.prepare(SMALL)])
    expect(made.length).toBe(2)
    vi.advanceTimersByTime(60_000)
    await pool.prepare(LARGE)
    expect(made).toEqual(['64-0', '64-1', '512-2'])
    expect(dropped).toEqual(['64-1'])
    await vi.advanceTimersByTimeAsync(601_000)
    expect(dropped.toSorted()).toEqual(made.toSorted())
    expect(vi.getTimerCount()).toBe(0)
    await pool.close()
  })

  it('with no places makes nothing', async () => {
    const pool = poolOf(0)
    await pool.prepare(SMALL)
    expect(pool.take(SMALL)).toBeUndefined()
    await pool.refill()
    expect(made).toEqual([])
    await pool.close()
  })

  it('says why one could not be made, and tries again with the next start', async () => {
    let fails = true
    const pool = standbyPool<string>({
      places: 1,
      keyOf: () => 'one',
      async make() {
        if (fails) throw new Error('no memory is left')
        return 'machine'
      },
      drop: async () => undefined,
    })
    await expect(pool.prepare(SMALL)).rejects.toThrow('no memory is left')
    fails = false
    expect(pool.take(SMALL)).toBeUndefined()
    await pool.refill()
    expect(await pool.take(SMALL)).toBe('machine')
    await pool.close()
  })

  it('that is closed while one is made drops it', async () => {
    const pool = poolOf(3)
    const filling = pool.prepare(SMALL)
    const closing = pool.close()
    await Promise.all([filling, closing])
    expect(dropped).toEqual(made)
    await pool.prepare(SMALL)
    expect(made.length).toBe(1)
  })
})
