import { afterEach, describe, expect, it } from 'vitest'
import { expectWithin } from '../../tests/crowding.ts'
import { type RegexWorkers, regexWorkers } from './regex-worker.ts'

const never = new AbortController().signal
const patterns = (text: string, must: string[], mustNot: string[] = [], flags = 'u') =>
  ({ kind: 'patterns', text, must, mustNot, flags }) as const
/** Takes longer than the age of the universe. */
const runaway = patterns(`${'a'.repeat(60)}!`, ['^(a+)+$'])

let workers: RegexWorkers | undefined
afterEach(() => workers?.close())

describe('regex workers', () => {
  it('answers which pattern decided', async () => {
    workers = regexWorkers()
    const { run } = workers
    expect(await run(patterns('abc', ['^a', 'c$']), never)).toEqual({ verdict: 'pass' })
    expect(await run(patterns('abc', ['^a', 'x']), never)).toEqual({
      verdict: 'fail',
      reason: 'must[1] does not match',
    })
    expect(await run(patterns('abc', [], ['x', 'B'], 'iu'), never)).toEqual({
      verdict: 'fail',
      reason: 'must_not[1] matches',
    })
    expect(await run(patterns('abc', ['(']), never)).toEqual({ verdict: 'error', reason: 'crashed' })
  })

  it('ends a pattern that backtracks without end, and never holds up the event loop', async () => {
    workers = regexWorkers({ size: 1 })
    await workers.run(patterns('a', ['a']), never)
    let last = performance.now()
    let worst = 0
    const ticking = setInterval(() => {
      worst = Math.max(worst, performance.now() - last)
      last = performance.now()
    }, 5)
    const from = performance.now()
    await expect(workers.run(runaway, AbortSignal.timeout(400))).rejects.toThrow('timeout')
    clearInterval(ticking)
    expectWithin(performance.now() - from, 2000)
    expectWithin(worst, 300)
    expect(await workers.run(patterns('b', ['b']), never)).toEqual({ verdict: 'pass' })
  })

  it('lets other jobs pass a runaway on another thread, and waiting jobs leave the line', async () => {
    workers = regexWorkers({ size: 2 })
    const stop = new AbortController()
    const first = workers.run(runaway, stop.signal)
    expect(await workers.run(patterns('b', ['b']), never)).toEqual({ verdict: 'pass' })
    const second = workers.run(runaway, stop.signal)
    const gone = new AbortController()
    const waiting = workers.run(patterns('c', ['c']), gone.signal)
    const next = workers.run(patterns('d', ['d']), never)
    gone.abort(new Error('client left'))
    await expect(waiting).rejects.toThrow('client left')
    stop.abort(new Error('stopped'))
    await expect(first).rejects.toThrow('stopped')
    await expect(second).rejects.toThrow('stopped')
    expect(await next).toEqual({ verdict: 'pass' })
  })

  it('does nothing for a signal that has aborted, and refuses after close', async () => {
    workers = regexWorkers()
    await expect(workers.run(runaway, AbortSignal.abort(new Error('late')))).rejects.toThrow('late')
    const open = workers.run(runaway, never)
    const closing = workers.close()
    await expect(open).rejects.toThrow('closed')
    await closing
    await expect(workers.run(patterns('a', ['a']), never)).rejects.toThrow('closed')
  })
})
