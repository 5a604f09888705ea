import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { underDeadline, unlessAborted } from '../../shared/time/until-aborted.ts'

const never = () => new Promise<never>(() => {})

describe('unlessAborted', () => {
  it('gives what is made, and leaves nothing behind at the signal', async () => {
    const { signal } = new AbortController()
    expect(await unlessAborted(signal, async given => given === signal)).toBe(true)
    await expect(unlessAborted(signal, () => Promise.reject(new Error('it failed')))).rejects.toThrow('it failed')
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('does not wait for work that ignores its signal', async () => {
    const stop = new AbortController()
    const done = unlessAborted(stop.signal, never)
    stop.abort(new Error('the run was taken over'))
    await expect(done).rejects.toThrow('the run was taken over')
  })

  it('begins nothing when it is too late', async () => {
    let begun = false
    const work = async () => {
      begun = true
    }
    await expect(unlessAborted(AbortSignal.abort(new Error('over')), work)).rejects.toThrow('over')
    await expect(underDeadline(AbortSignal.abort(new Error('over')), 10, work, () => new Error())).rejects.toThrow(
      'over',
    )
    expect(begun).toBe(false)
  })
})

describe('underDeadline', () => {
  it('ends work at its deadline, and tells the work', async () => {
    const { signal } = new AbortController()
    let told: AbortSignal | undefined
    const work = (given: AbortSignal) => {
      told = given
      return never()
    }
    await expect(underDeadline(signal, 1, work, () => new Error('late'))).rejects.toThrow('late')
    expect(told?.aborted).toBe(true)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('ends it for the reason of the outer signal', async () => {
    const stop = new AbortController()
    const done = underDeadline(stop.signal, 60_000, never, () => new Error('late'))
    stop.abort(new Error('stopped'))
    await expect(done).rejects.toThrow('stopped')
  })
})
