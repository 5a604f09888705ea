import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { groupCommit, QueueClosedError, QueueFullError } from './group-commit.ts'

const busy = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
const lost = Object.assign(new Error('the server went away'), { code: 'SERVER_ERROR' })
const poison = new Error('this row is refused')
const noWait = async () => {}

/** A write whose commits end when the test says so. */
function heldWrite() {
  const commits: { rows: number[]; finish: () => void }[] = []
  const write = (rows: number[]) =>
    new Promise<number[]>(resolve => commits.push({ rows, finish: () => resolve(rows.map(row => row * 10)) }))
  return { commits, write }
}

/** Lets everything run that needs no timer. */
const settled = () => new Promise(resolve => setImmediate(resolve))

describe('group commit', () => {
  test('gives appends that arrive during a commit to the next one', async () => {
    const { commits, write } = heldWrite()
    const writer = groupCommit({ write })
    const first = writer.append(1)
    await settled()
    const later = [2, 3, 4].map(row => writer.append(row))
    await settled()
    expect(commits.map(commit => commit.rows)).toEqual([[1]])
    expect(writer.pending).toBe(4)
    commits[0]?.finish()
    expect(await first).toBe(10)
    await settled()
    expect(commits.map(commit => commit.rows)).toEqual([[1], [2, 3, 4]])
    commits[1]?.finish()
    expect(await Promise.all(later)).toEqual([20, 30, 40])
    expect(writer.pending).toBe(0)
  })

  test('gathers writers that come back at once with their next row into one commit', async () => {
    const sizes: number[] = []
    const writer = groupCommit<number, number>({
      write: async rows => {
        sizes.push(rows.length)
        return rows
      },
    })
    // Callers sit at different depths of promises above the writer.
    const store = async (row: number, depth: number): Promise<number> =>
      depth === 0 ? writer.append(row) : store(row, depth - 1)
    const loop = async (depth: number) => {
      for (let row = 0; row < 20; row++) await store(row, depth)
    }
    await Promise.all(Array.from({ length: 50 }, (_, index) => loop(index % 4)))
    expect(sizes).toEqual(Array(20).fill(50))
  })

  test('lets timers run while writers never stop', async () => {
    const writer = groupCommit<number, number>({ write: async rows => rows })
    let stop = false
    setTimeout(() => {
      stop = true
    }, 20)
    const started = performance.now()
    while (!stop && performance.now() - started < 2000) await writer.append(1)
    expect(stop).toBe(true)
  })

  test('stops a commit at maxRows and before maxWeight, and still writes a row heavier than that', async () => {
    const commits: number[][] = []
    const writer = groupCommit<number, number>({
      write: async rows => {
        commits.push(rows)
        return rows
      },
      maxRows: 3,
      maxWeight: 10,
      weigh: row => row,
    })
    await Promise.all([1, 1, 1, 1, 99, 6, 5].map(row => writer.append(row)))
    expect(commits).toEqual([[1, 1, 1], [1], [99], [6], [5]])
  })

  test('refuses rows beyond maxPending with a typed error and takes rows again afterwards', async () => {
    const { commits, write } = heldWrite()
    const writer = groupCommit({ write, maxPending: 2 })
    const taken = [writer.append(1), writer.append(2)]
    await expect(writer.append(3)).rejects.toBeInstanceOf(QueueFullError)
    await settled()
    commits[0]?.finish()
    await Promise.all(taken)
    const again = writer.append(4)
    await settled()
    expect(commits[1]?.rows).toEqual([4])
    commits[1]?.finish()
    await again
  })

  test('asks a busy database again and gives up after the agreed number of times', async () => {
    let calls = 0
    const waits: number[] = []
    const writer = groupCommit<number, number>({
      write: async rows => {
        if (++calls < 4) throw busy
        return rows
      },
      wait: async ms => {
        waits.push(ms)
      },
    })
    expect(await Promise.all([writer.append(1), writer.append(2)])).toEqual([1, 2])
    expect(calls).toBe(4)
    expect(waits).toHaveLength(3)
    for (const ms of waits) expect(ms).toBeGreaterThan(0)

    calls = Number.NEGATIVE_INFINITY
    let asked = 0
    const never = groupCommit<number, number>({
      write: () => {
        asked++
        return Promise.reject(busy)
      },
      wait: noWait,
      busyRetries: 2,
    })
    const outcomes = await Promise.allSettled([never.append(1), never.append(2)])
    expect(outcomes.map(outcome => outcome.status === 'rejected' && outcome.reason)).toEqual([busy, busy])
    expect(asked).toBe(3)
  })

  test('never repeats a write whose outcome is unknown', async () => {
    const commits: number[][] = []
    const writer = groupCommit<number, number>({
      write: rows => {
        commits.push(rows)
        return Promise.reject(lost)
      },
    })
    const outcomes = await Promise.allSettled([1, 2, 3].map(row => writer.append(row)))
    expect(outcomes.every(outcome => outcome.status === 'rejected' && outcome.reason === lost)).toBe(true)
    expect(commits).toEqual([[1, 2, 3]])
  })

  test('does not repeat rows when a write answers with the wrong number of results', async () => {
    let calls = 0
    const writer = groupCommit<number, number>({
      write: async () => {
        calls++
        return [1]
      },
    })
    const outcomes = await Promise.allSettled([writer.append(1), writer.append(2)])
    expect(
      outcomes.every(outcome => outcome.status === 'rejected' && /gave 1 results/.test(String(outcome.reason))),
    ).toBe(true)
    expect(calls).toBe(1)
  })

  test('flush waits for the rows before it and not for those after', async () => {
    const { commits, write } = heldWrite()
    const writer = groupCommit({ write, maxRows: 1 })
    void writer.append(1)
    let flushed = false
    const flush = writer.flush().then(() => {
      flushed = true
    })
    void writer.append(2)
    await settled()
    expect(flushed).toBe(false)
    commits[0]?.finish()
    await flush
    expect(writer.pending).toBe(1)
    await settled()
    commits[1]?.finish()
    await writer.flush()
    expect(writer.pending).toBe(0)
  })

  test('close drains what it has, refused rows included, and takes no more', async () => {
    const writer = groupCommit<number, number>({
      write: async rows => {
        if (rows.includes(2)) throw poison
        return rows
      },
    })
    const outcomes = Promise.allSettled([1, 2, 3].map(row => writer.append(row)))
    const closing = writer.close()
    await expect(writer.append(4)).rejects.toBeInstanceOf(QueueClosedError)
    await closing
    expect(writer.pending).toBe(0)
    expect((await outcomes).map(outcome => outcome.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  test('in any interleaving each row is settled once with its own result, in order, and only poison rows fail', async () => {
    const step = fc.record({
      rows: fc.array(fc.constantFrom('good', 'good', 'good', 'poison' as const), { minLength: 1, maxLength: 12 }),
      // What happens between this burst and the next one.
      gap: fc.constantFrom('nothing', 'microtask', 'turn', 'flush'),
    })
    const scenario = fc.record({
      steps: fc.array(step, { maxLength: 8 }),
      maxRows: fc.integer({ min: 1, max: 9 }),
      // For each call of write: how many promise hops it takes, and how many busy answers it gives first.
      delays: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 6 }),
      busies: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 6 }),
    })
    await fc.assert(
      fc.asyncProperty(scenario, async ({ steps, maxRows, delays, busies }) => {
        const stored: number[] = []
        const poisoned = new Set<number>()
        let calls = 0
        let inFlight = 0
        let busyLeft = busies[0] ?? 0
        const writer = groupCommit<number, string>({
          maxRows,
          wait: noWait,
          write: async rows => {
            expect(++inFlight).toBe(1)
            expect(rows.length).toBeLessThanOrEqual(maxRows)
            try {
              for (let hop = delays[calls % delays.length] ?? 0; hop > 0; hop--) await null
              if (busyLeft > 0) {
                busyLeft--
                throw busy
              }
              calls++
              busyLeft = busies[calls % busies.length] ?? 0
              if (rows.some(row => poisoned.has(row))) throw poison
              stored.push(...rows)
              return rows.map(row => `result of ${row}`)
            } finally {
              inFlight--
            }
          },
        })
        let next = 0
        const settledRows: number[] = []
        const outcomes: Promise<string>[] = []
        for (const { rows, gap } of steps) {
          for (const kind of rows) {
            const row = next++
            if (kind === 'poison') poisoned.add(row)
            outcomes.push(
              writer.append(row).then(
                result => {
                  settledRows.push(row)
                  return result
                },
                (error: unknown) => {
                  settledRows.push(row)
                  return error === poison ? 'poison' : `unexpected ${String(error)}`
                },
              ),
            )
          }
          if (gap === 'microtask') await null
          if (gap === 'turn') await settled()
          if (gap === 'flush') await writer.flush()
        }
        await writer.close()
        const all = Array.from({ length: next }, (_, row) => row)
        expect(await Promise.all(outcomes)).toEqual(all.map(row => (poisoned.has(row) ? 'poison' : `result of ${row}`)))
        expect(settledRows).toEqual(all)
        expect(stored).toEqual(all.filter(row => !poisoned.has(row)))
        expect(writer.pending).toBe(0)
      }),
      { numRuns: 200 },
    )
  })
})
