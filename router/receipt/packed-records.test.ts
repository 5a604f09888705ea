import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { sampleTrace } from '../traces/testing/records.ts'
import { packRecords, unpackRecords } from './packed-records.ts'
import { sampleUnhashed } from './testing/unhashed.ts'
import { bytesToHash, finished, type Recorded, type Unhashed } from './unhashed.ts'

const hashing = { sha256: nativeSha256, salt: new Uint8Array(32).fill(7) }
const trace = sampleTrace()
const body = fc.uint8Array({ maxLength: 300 })

const unhashed: fc.Arbitrary<Unhashed> = fc
  .record({
    body,
    sent: fc.oneof(body, fc.constantFrom('body' as const, null)),
    cuts: fc.array(fc.nat(300), { maxLength: 4 }),
  })
  .map(({ body, sent, cuts }) => {
    const ends = cuts.map(cut => Math.min(cut, body.length)).sort((a, b) => a - b)
    const prompt = cuts.length % 2 === 1 ? undefined : pairsOf(ends)
    const one = sampleUnhashed({ trace, body, sent: sent === 'body' ? body : sent })
    return { ...one, prompt, ...(cuts.length > 2 && { context }) }
  })

function pairsOf(ends: readonly number[]) {
  return ends.flatMap((start, i) => (i % 2 === 0 ? [{ start, end: ends[i + 1]! }] : []))
}

const made = (one: Recorded) => finished(one, hashing).whole
const context = { traceparent: '00-1-2-01', starts: [0, 12.5] }

describe('records packed for another thread', () => {
  it('get the hashes there that they get here, beside records that have them', () =>
    fc.assert(
      fc.property(
        fc.array(fc.oneof(unhashed, fc.constantFrom<Recorded>({ whole: trace }, { whole: trace, context })), {
          maxLength: 6,
        }),
        records => {
          const packed = packRecords(records)
          expect(packed.bytes.length).toBe(
            records.reduce((sum, one) => sum + ('body' in one ? bytesToHash(one) : 0), 0),
          )
          expect(unpackRecords(packed).map(made)).toEqual(records.map(made))
          expect(unpackRecords(packed).map(one => one.context)).toEqual(records.map(one => one.context))
        },
      ),
      { numRuns: 300 },
    ))

  it('carry a body that went upstream unchanged once, and say that no byte changed', () => {
    const one = sampleUnhashed()
    expect(bytesToHash(one)).toBe(one.body.length)
    const { request } = made(unpackRecords(packRecords([one]))[0]!)
    expect(request.body_sha256_out).toBe(request.body_sha256_in)
    const copied = made({ ...one, sent: Uint8Array.from(one.body) })
    expect(copied.request).toEqual(request)
    const changed = made({ ...one, sent: one.body.subarray(1) })
    expect(changed.request.body_sha256_out).not.toBe(request.body_sha256_in)
    expect(made({ ...one, sent: null }).request.body_sha256_out).toBe(null)
  })
})
