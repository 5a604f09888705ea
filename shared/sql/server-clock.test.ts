import type { ResultSet } from '@libsql/client/web'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../time/testing/manual-clock.ts'
import { aheadOfServer, serverClock } from './server-clock.ts'

const START = new Date('2026-01-02T03:04:05Z')
const answering = (ms: () => number) => async () => ({ rows: [{ ms: ms() }] }) as unknown as ResultSet

it('says how far the clock is ahead or behind, and nothing of what the way there may hide', async () => {
  const off = async (serverMs: number, beforeMs: number, afterMs: number) => {
    const times = [beforeMs, afterMs]
    return aheadOfServer({ execute: answering(() => serverMs) }, () => new Date(times.shift() ?? 0))
  }
  expect(await off(100_920, 100_900, 100_950)).toBe(0)
  expect(await off(100_000, 99_000, 103_000)).toBe(0)
  expect(await off(100_500, 400_500, 400_600)).toBe(300_000)
  expect(await off(100_500, 40_000, 40_100)).toBe(-60_400)
})

describe('the clock of a server', () => {
  function on(aheadMs: number) {
    const host = manualClock(new Date(START.getTime() + aheadMs))
    let serverMs = START.getTime()
    const clock = serverClock({ execute: answering(() => serverMs) }, host)
    return {
      host,
      clock,
      off: () => clock.now().getTime() - serverMs,
      pass(ms: number) {
        host.advance(ms)
        serverMs += ms
      },
      putServer: (ms: number) => (serverMs += ms),
    }
  }

  it.each([300_000, -300_000])('is right where that of the machine is off by %d ms, and says by how much', async ms => {
    const { clock, off, pass } = on(ms)
    expect(off()).toBe(ms)
    expect(await clock.compare()).toBe(ms)
    expect(off()).toBe(0)
    pass(3_600_000)
    expect(off()).toBe(0)
  })

  it('does not move with that of the machine, and says that it has moved', async () => {
    const { clock, host, off, pass } = on(0)
    await clock.compare()
    host.set(86_400_000)
    pass(1000)
    expect(off()).toBe(0)
    expect(await clock.compare()).toBe(86_400_000)
    expect(off()).toBe(0)
  })

  it('follows a server whose clock is put, and no difference that answers may hide', async () => {
    const { clock, off, putServer } = on(0)
    putServer(-200)
    await clock.compare()
    expect(off()).toBe(200)
    putServer(-100)
    await clock.compare()
    expect(off()).toBe(0)
  })

  it('goes on as it was while the server does not answer', async () => {
    const host = manualClock(START)
    const clock = serverClock({ execute: () => Promise.reject(new Error('away')) }, host)
    await expect(clock.compare()).rejects.toThrow('away')
    host.advance(60_000)
    expect(clock.now()).toEqual(new Date(START.getTime() + 60_000))
  })
})
