import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Turn } from './adaptive-conformal.ts'
import {
  addServed,
  fewestServed,
  isServedEvidenceEnough,
  MOST_SESSIONS,
  type ServedEvidence,
  servedFrom,
} from './served-evidence.ts'

const CLAIM = { alpha: 0.1, delta: 0.05 }
const pass = (evidence: ServedEvidence, session: string) =>
  addServed(evidence, { session, from: undefined, to: 'pass' }, CLAIM)

describe('the evidence over what was served', () => {
  it('is what the last word on each answer comes to, in whatever order answers were reported and corrected', () => {
    const change = fc.record({ answer: fc.nat(15), to: fc.constantFrom<Turn>('pass', 'fail', undefined) })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), changes => {
        const words = new Map<number, Turn>()
        const sessionOf = (answer: number) => `session ${answer % 4}`
        let evidence = servedFrom(0)
        for (const { answer, to } of changes) {
          evidence = addServed(evidence, { session: sessionOf(answer), from: words.get(answer), to }, CLAIM)
          words.set(answer, to)
        }
        let anew = servedFrom(0)
        for (const [answer, to] of words) {
          anew = addServed(anew, { session: sessionOf(answer), from: undefined, to }, CLAIM)
        }
        const close = (stakes: readonly number[]) => stakes.map(e => expect.closeTo(e, 8) as number)
        expect(evidence.answers.stakes).toEqual(close(anew.answers.stakes))
        expect(evidence.sessions.stakes).toEqual(close(anew.sessions.stakes))
      }),
    )
  })

  it('counts a failure of a session that it no longer knows, and takes none out of it', () => {
    let evidence = pass(servedFrom(0), 'old')
    for (let i = 0; i < MOST_SESSIONS; i++) evidence = pass(evidence, `${i}`)
    expect(evidence.tallies).toHaveLength(MOST_SESSIONS)
    const failed = addServed(evidence, { session: 'old', from: 'pass', to: 'fail' }, CLAIM)
    expect(failed.sessions.stakes[3]).toBeLessThan(evidence.sessions.stakes[3]!)
    const corrected = addServed(servedFrom(0), { session: 'old', from: 'fail', to: 'pass' }, CLAIM)
    expect(corrected.sessions.stakes).toEqual([1, 1, 1, 1])
  })

  it('is enough after as many sessions as it says, and no sooner', () => {
    const fewest = fewestServed(CLAIM)
    let evidence = servedFrom(0)
    for (let i = 0; i < fewest; i++) {
      expect(isServedEvidenceEnough(evidence)).toBe(false)
      evidence = pass(evidence, `${i}`)
    }
    expect([fewest, isServedEvidenceEnough(evidence), evidence.sessionsSeen]).toEqual([47, true, 47])
  })
})
