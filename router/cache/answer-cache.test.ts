import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { answerCache } from './answer-cache.ts'

describe('answers that are kept', () => {
  it('stay within their bounds, whatever is kept, found and taken back', () => {
    const id = fc.integer({ min: 0, max: 20 }).map(String)
    const act = fc.oneof(
      fc.record({ do: fc.constant('keep' as const), key: id, size: fc.integer({ min: 1, max: 400 }) }),
      fc.record({ do: fc.constant('find' as const), key: id }),
      fc.record({ do: fc.constant('retract' as const), key: id }),
    )
    fc.assert(
      fc.property(fc.array(act, { maxLength: 200 }), acts => {
        const cache = answerCache<string>({ monotonic: () => 0, maxBytes: 1000, maxAnswers: 5 })
        let trace = 0
        const made = new Map<string, string>()
        for (const one of acts) {
          if (one.do === 'keep') {
            cache.keep(one.key, `t${++trace}`, one.key, one.size)
            made.set(one.key, `t${trace}`)
          } else if (one.do === 'find') {
            expect([one.key, undefined]).toContain(cache.find(one.key, 10, `t${++trace}`))
          } else {
            cache.retract(made.get(one.key) ?? '')
            expect(cache.find(one.key, 10, 'x')).toBeUndefined()
          }
          expect(cache.size.bytes).toBeLessThanOrEqual(1000)
          expect(cache.size.answers).toBeLessThanOrEqual(5)
          if (cache.size.answers === 0) expect(cache.size).toEqual({ answers: 0, bytes: 0, traces: 0 })
        }
      }),
    )
  })

  it('can be taken back by the first call and by later ones, and grow old', () => {
    let now = 0
    const cache = answerCache<string>({ monotonic: () => now })
    cache.keep('k', 'first', 'answer', 10)
    expect(cache.find('k', 60, 'second')).toBe('answer')
    cache.retract('second')
    expect(cache.find('k', 60, 'third')).toBeUndefined()
    cache.keep('k', 'fourth', 'answer', 10)
    now = 60_001
    expect(cache.find('k', 60, 'fifth')).toBeUndefined()
  })

  it('forgets the later calls of one answer before the first', () => {
    const cache = answerCache<string>({ monotonic: () => 0 })
    cache.keep('k', 'first', 'answer', 10)
    for (let n = 0; n < 3000; n++) cache.find('k', 60, `hit-${n}`)
    expect(cache.size.traces).toBe(1000)
    cache.retract('first')
    expect(cache.size.traces).toBe(0)
  })
})
