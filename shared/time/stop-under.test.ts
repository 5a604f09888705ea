import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { stopUnder } from './until-aborted.ts'

describe('a controller under another one', () => {
  it('stops with its parent, for its reason', () => {
    const parent = new AbortController()
    const { stop } = stopUnder(parent.signal)
    expect(stop.signal.aborted).toBe(false)
    parent.abort('over')
    expect(stop.signal.reason).toBe('over')
  })

  it('has stopped where its parent had', () => {
    expect(stopUnder(AbortSignal.abort('before')).stop.signal.reason).toBe('before')
  })

  it('stops alone, and leaves nothing with a parent that it has left', () => {
    const parent = new AbortController()
    const { stop, leave } = stopUnder(parent.signal)
    stop.abort('alone')
    expect(parent.signal.aborted).toBe(false)
    leave()
    expect(getEventListeners(parent.signal, 'abort')).toEqual([])
  })
})
