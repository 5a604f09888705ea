import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { parseRecord, recordReader } from './record-reader.ts'
import { sampleTrace } from './testing/records.ts'
import { rowOf } from './trace-row.ts'

/** What a verification asks of a record, whoever read it. */
function seen(record: ReturnType<ReturnType<typeof recordReader>>) {
  if (record === undefined) return undefined
  let row: unknown
  try {
    row = rowOf(record, record.seq)
  } catch {
    row = 'no row'
  }
  const { trace_id, tenant_id, seq, hash, prev_hash } = record
  return { trace_id, tenant_id, seq, hash, prev_hash, row }
}

const text = fc.oneof(fc.string({ maxLength: 8 }), fc.string({ unit: 'binary', maxLength: 8 }))
const number = fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))
const anything = fc.oneof(text, number, fc.boolean(), fc.constant(null), fc.constant([]), fc.constant({}))
const some = fc.oneof({ weight: 6, arbitrary: fc.constant({}) }, fc.dictionary(text, anything, { maxKeys: 2 }))
const oneOf = (names: string[]) => fc.dictionary(fc.constantFrom(...names), anything, { maxKeys: 1 })

const records = fc
  .record({
    attempts: fc.integer({ min: 0, max: 2 }),
    final: fc.oneof(
      { weight: 4, arbitrary: fc.constant({}) },
      oneOf(['served_model', 'total_cost_usd', 'escalations']),
    ),
    members: fc.oneof(
      { weight: 4, arbitrary: fc.constant({}) },
      oneOf(['final', 'attempts', 'mode', 'seq', 'hash', 'x']),
    ),
    request: some,
    route: fc.constantFrom(null, 0, 3),
    cost: fc.oneof(fc.constant(null), fc.double({ min: 0, max: 1e-3, noNaN: true })),
  })
  .map(({ attempts, final, members, request, route, cost }) => {
    const one = sampleTrace({ route, cost, final: final as object })
    const sealed = { ...one, seq: 7, hash: 'a'.repeat(64), prev_hash: 'b'.repeat(64) }
    const list = Array.from({ length: attempts }, () => one.attempts[0])
    return { ...sealed, request: { ...one.request, ...request }, attempts: list, ...members }
  })

const spelled = fc.tuple(records, fc.integer({ min: 0, max: 9 }), fc.nat(), text).map(([record, how, place, piece]) => {
  const whole =
    how < 7 ? canonicalize(JSON.parse(JSON.stringify(record).replace(/\\ud[89a-f]../gi, ''))) : JSON.stringify(record)
  // Some are damaged: a piece of something else stands somewhere in them.
  if (how !== 5 && how !== 8) return whole
  const at = place % whole.length
  return whole.slice(0, at) + piece + whole.slice(at + (place % 3))
})

describe('the reader of records', () => {
  it('says of any text what parsing it says, as far as a verification asks', () => {
    fc.assert(
      fc.property(fc.array(spelled, { minLength: 1, maxLength: 40 }), texts => {
        const read = recordReader()
        for (const one of [...texts, ...texts]) expect(seen(read(one))).toEqual(seen(parseRecord(one)))
      }),
      { numRuns: 60 },
    )
  })

  it('parses a text that says a name twice, and each where there are more shapes than it knows', () => {
    const read = recordReader()
    const sealed = { ...sampleTrace(), seq: 1, hash: 'a'.repeat(64), prev_hash: 'b'.repeat(64) }
    const plain = JSON.stringify(sealed)
    expect(seen(read(plain))).toEqual(seen(parseRecord(plain)))
    const twice = plain.replace('"mode":"enforce"', '"mode":"enforce","mode":"observe"')
    expect(seen(read(twice))).toEqual(seen(parseRecord(twice)))
    expect(seen(read(twice))?.row).toContain('observe')
    for (let n = 0; n < 3000; n++) {
      const own = JSON.stringify({ ...sealed, seq: n, [`m${n % 40}`]: 1 })
      expect(read(own)?.seq).toBe(n)
    }
  })
})
