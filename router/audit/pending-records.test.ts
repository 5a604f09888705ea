import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sampleTrace } from '../traces/testing/records.ts'
import { pendingRecords } from './pending-records.ts'

describe('the records that wait for the writer', () => {
  it('finds every one that the writer still holds, by each id, and keeps few others', () => {
    const step = fc.oneof(
      fc.constant('take'),
      fc.nat(300).map(written => ({ written })),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), steps => {
        const taken: ReturnType<typeof sampleTrace>[] = []
        let held = 0
        const records = pendingRecords(() => held)
        for (const one of steps) {
          if (one !== 'take') {
            held = Math.max(0, held - one.written)
            continue
          }
          const n = taken.length
          const record = sampleTrace({
            tenant: n % 2 ? 'a' : 'b',
            at: n + 1,
            final: { response_id: `msg_${n}`, upstream_request_id: `req_${n}` },
          })
          taken.push(record)
          held++
          records.took(record)
        }
        for (const record of held === 0 ? [] : taken.slice(-held)) {
          const { trace_id, tenant_id, final } = record
          for (const id of [trace_id, final.response_id!, final.upstream_request_id!]) {
            expect(records.find(id)).toBe(record)
            expect(records.find(id, tenant_id)).toBe(record)
            expect(records.find(id, 'other')).toBeUndefined()
          }
        }
      }),
    )
  })

  it('gives the newest of several, and forgets what was written long ago', () => {
    let held = 0
    const records = pendingRecords(() => held)
    const [first, second] = [1, 2].map(at => sampleTrace({ at, final: { client_request_id: 'same' } }))
    held = 2
    records.took(first!)
    records.took(second!)
    expect(records.find('same')).toBe(second)
    held = 0
    for (let at = 0; at < 100; at++) records.took(sampleTrace({ at: 10 + at }))
    expect(records.find(first!.trace_id)).toBeUndefined()
  })
})
