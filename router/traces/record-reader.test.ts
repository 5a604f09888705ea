import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJson } from '../../shared/json/read-json.ts'
import { TRACE } from '../../shared/proof/members.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { type ReadLine, readLine, recordReader } from './record-reader.ts'
import { sampleTrace } from './testing/records.ts'
import { rowOf } from './trace-row.ts'

/** What a verification asks of a record, for every reader. */
function seen({ record, fault }: ReadLine) {
  if (record === undefined) return { fault }
  let row: unknown
  try {
    row = rowOf(record, record.seq)
  } catch {
    row = 'no row'
  }
  const { trace_id, tenant_id, seq, hash, prev_hash } = record
  return { fault, trace_id, tenant_id, seq, hash, prev_hash, row }
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
    how < 7 ? canonicalize(readJson(JSON.stringify(record).replace(/\\ud[89a-f]../gi, ''))) : JSON.stringify(record)
  // Some are damaged: a piece of something else stands somewhere in them.
  if (how !== 5 && how !== 8) return whole
  const at = place % whole.length
  return whole.slice(0, at) + piece + whole.slice(at + (place % 3))
})

describe('the reader of records', () => {
  it('takes no number as it stands that is not spelled as its canonical form has it', () => {
    const sealed = { ...sampleTrace(), seq: 1, hash: 'a'.repeat(64), prev_hash: 'b'.repeat(64) }
    const plain = canonicalize(sealed)
    const digits = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
      fc.stringMatching(/^-?\d{1,18}(\.\d{1,12})?(e[+-]?\d{1,3})?$/),
      fc.integer({ min: 0, max: 1e9 }).map(nano => (nano / 1e9).toFixed(9)),
      fc.integer({ min: 0, max: 1e9 }).map(nano => String(nano / 1e9)),
    )
    const read = recordReader()
    read(plain)
    fc.assert(
      fc.property(digits, spelled => {
        const line = read(plain.replace('"wall_ms":820.1', `"wall_ms":${spelled}`))
        if (line.isCanonical) expect(String(Number(spelled))).toBe(spelled)
      }),
      { numRuns: 3000 },
    )
    const again = recordReader()
    again(plain)
    expect(again(plain.replace('"wall_ms":820.1', '"wall_ms":12.000125')).isCanonical).toBe(true)
  })

  it('says of any text what parsing it says, as far as a verification asks', () => {
    fc.assert(
      fc.property(fc.array(spelled, { minLength: 1, maxLength: 40 }), texts => {
        const read = recordReader()
        for (const one of [...texts, ...texts]) {
          const line = read(one)
          expect(seen(line)).toEqual(seen(readLine(one, TRACE)))
          if (line.isCanonical) expect(canonicalize(readJson(one))).toBe(one)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('parses a text that says a name twice, and each where there are more shapes than it knows', () => {
    const read = recordReader()
    const sealed = { ...sampleTrace(), seq: 1, hash: 'a'.repeat(64), prev_hash: 'b'.repeat(64) }
    const plain = canonicalize(sealed)
    for (const time of [1, 2]) {
      expect(seen(read(plain))).toEqual(seen(readLine(plain, TRACE)))
      expect(read(plain).isCanonical, `the reading ${time}`).toBe(true)
    }
    const twice = plain.replace('"mode":"enforce"', '"mode":"enforce","mode":"observe"')
    expect(read(twice).fault).toBe('duplicate_member')
    for (let n = 0; n < 3000; n++) {
      const own = JSON.stringify({ ...sealed, seq: n, [`m${n % 40}`]: 1 })
      expect(read(own).record?.seq).toBe(n)
    }
  })
})
