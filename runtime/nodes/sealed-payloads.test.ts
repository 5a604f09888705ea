import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { eventLines, readEventLines } from './sealed-payloads.ts'

const event = fc.record({
  hash: fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 64, maxLength: 64 }),
  body: fc.dictionary(fc.string(), fc.string({ unit: 'binary' })).map(value => canonicalize(value)),
})

test('the events of a journal come as lines as they stand, whatever they say', () => {
  fc.assert(
    fc.property(fc.array(event, { minLength: 1 }), fc.boolean(), (events, hasMore) => {
      const text = new TextDecoder().decode(eventLines(events, hasMore))
      expect(readEventLines(text, 500)).toEqual({ events, hasMore })
    }),
  )
})

test('a page without an event is the last one', () => {
  for (const text of ['', 'more\n']) expect(readEventLines(text, 500)).toEqual({ events: [], hasMore: false })
})

test('a list in JSON is no such lines', () => {
  expect(readEventLines('[]', 500)).toBeUndefined()
  expect(readEventLines(JSON.stringify([{ hash: '00', body: '{}' }]), 500)).toBeUndefined()
})
