import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { pendingIndex } from './pending.ts'
import { sampleTrace } from './testing/records.ts'

describe('the index of pending ids', () => {
  it('finds a trace by each id of its own tenant, before and after more ids are known', () => {
    const index = pendingIndex()
    const record = sampleTrace()
    const { tenant_id, trace_id } = record
    index.register({ tenant_id, trace_id, client_request_id: 'call' })
    index.register({ tenant_id, trace_id, response_id: 'msg', upstream_request_id: 'req' })
    for (const id of [trace_id, 'call', 'msg', 'req']) expect(index.get(tenant_id, id)?.trace_id).toBe(trace_id)
    expect(index.get('other', 'msg')).toBeUndefined()
    index.attach(record)
    expect(index.get(tenant_id, 'msg')?.record).toBe(record)
    index.settled(trace_id)
    expect(index.get(tenant_id, 'msg')).toMatchObject({ trace_id })
    expect(index.get(tenant_id, 'msg')?.record).toBeUndefined()
  })

  it('gives a trace id before a response id before a request id, and of several the newest', () => {
    const index = pendingIndex()
    const [a, b, c] = [1, 2, 3].map(ms => uuidv7(ms)) as [string, string, string]
    index.register({ tenant_id: 't', trace_id: b, client_request_id: 'x' })
    index.register({ tenant_id: 't', trace_id: a, client_request_id: 'x' })
    expect(index.get('t', 'x')?.trace_id).toBe(b)
    index.register({ tenant_id: 't', trace_id: a, response_id: 'x' })
    expect(index.get('t', 'x')?.trace_id).toBe(a)
    index.register({ tenant_id: 't', trace_id: c, response_id: a })
    expect(index.get('t', a)?.trace_id).toBe(a)
  })

  it('holds the newest and no more, and forgets every id of what it drops', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20), { maxLength: 60 }), calls => {
        const index = pendingIndex(10)
        const traces = calls.map((call, at) => ({
          tenant_id: 't',
          trace_id: uuidv7(at),
          client_request_id: `c${call}`,
        }))
        for (const trace of traces) index.register(trace)
        const kept = traces.slice(-10)
        expect(index.size).toBe(kept.length)
        for (const { trace_id, client_request_id } of traces) {
          const there = kept.some(one => one.trace_id === trace_id)
          expect(index.get('t', trace_id)?.trace_id).toBe(there ? trace_id : undefined)
          const newest = kept.findLast(one => one.client_request_id === client_request_id)
          expect(index.get('t', client_request_id)?.trace_id).toBe(newest?.trace_id)
        }
      }),
    )
  })
})
