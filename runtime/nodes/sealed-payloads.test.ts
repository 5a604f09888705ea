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
    fc.property(fc.array(event), events => {
      expect(readEventLines(new TextDecoder().decode(eventLines(events)), 500)).toEqual(events)
    }),
  )
})

test('a list in JSON is no such lines', () => {
  expect(readEventLines('[]', 500)).toBeUndefined()
  expect(readEventLines(JSON.stringify([{ hash: '00', body: '{}' }]), 500)).toBeUndefined()
})
