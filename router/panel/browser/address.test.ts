import fc from 'fast-check'
import { expect, it } from 'vitest'
import { addressOf, type PanelView, viewOf } from './address.ts'

const at = (address: string): PanelView => viewOf(new URL(address, 'http://127.0.0.1/deep/'))

it('says which calls are listed and which trace is open', () => {
  expect(at('panel?mode=enforce&route=1&unknown=x#trace=0190-a')).toEqual({
    filters: { mode: 'enforce', route: '1' },
    days: undefined,
    trace: '0190-a',
  })
  expect(at('panel#trace=<img>')).toEqual({ filters: {}, days: undefined, trace: undefined })
  expect(addressOf({ filters: { session: '' }, days: undefined, trace: undefined })).toBe('panel')
})

it('leads back to every place that it is the address of', () => {
  const word = fc.string({ minLength: 1 }).filter(text => text === text.trim() && text.isWellFormed())
  const place = fc.record({
    filters: fc.record(
      { mode: word, served_from: word, route: word, session: word, since: word },
      { requiredKeys: [] },
    ),
    days: fc.constantFrom(undefined, '', '7', '90'),
    trace: fc.option(fc.stringMatching(/^[\w-]{1,128}$/), { nil: undefined }),
  })
  fc.assert(
    fc.property(place, one => {
      expect(at(addressOf(one))).toEqual({ ...one, filters: { ...one.filters } })
    }),
  )
})
