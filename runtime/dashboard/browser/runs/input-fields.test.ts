import fc from 'fast-check'
import { expect, it } from 'vitest'
import { bodyFrom } from '../shell/form-body.ts'
import { inputFields } from './input-fields.ts'

const FORM = {
  type: 'object',
  properties: {
    note: { type: 'string', description: 'Kept with it' },
    city: { type: 'string', maxLength: 40, title: 'City', default: 'Oslo' },
    day: { type: 'string', format: 'date' },
    guests: { type: 'integer', minimum: 1, maximum: 9 },
    size: { enum: ['small', 'large'], default: 'large' },
    level: { enum: [1, 2, null] },
    late: { type: 'boolean' },
    extras: { type: 'array' },
    either: { type: ['string', 'null'] },
  },
  required: ['city', 'note'],
}

it('asks for each member by a field of its kind, the required ones first', () => {
  const fields = inputFields(FORM)!
  expect(fields.map(({ name, look, as, value }) => [name, look, as, value])).toEqual([
    ['city', 'line', '', 'Oslo'],
    ['note', 'text', '', ''],
    ['day', 'line', '', ''],
    ['guests', 'number', 'number', ''],
    ['size', 'choice', '', 'large'],
    ['level', 'choice', 'json', ''],
    ['late', 'choice', 'json', ''],
    ['extras', 'json', 'json', ''],
    ['either', 'json', 'json', ''],
  ])
  expect(fields[0]).toMatchObject({ title: 'City', required: true, limits: { maxlength: 40 } })
  expect(fields[3]!.limits).toEqual({ step: 1, min: 1, max: 9 })
  expect(fields[6]!.choices.map(({ words }) => words)).toEqual(['yes', 'no'])
})

it('leaves to JSON what no form can say', () => {
  const properties = Object.fromEntries(Array.from({ length: 41 }, (_, i) => [`a${i}`, {}]))
  for (const schema of [
    undefined,
    true,
    { type: 'object' },
    { properties: {} },
    { properties: { 'a.b': { type: 'string' } } },
    { properties: JSON.parse('{ "__proto__": {} }') as object },
    { properties: { toString: {} } },
    { properties },
  ])
    expect(inputFields(schema)).toBe(undefined)
})

it('reads back what was chosen, of every kind of value', () => {
  const value = fc.oneof(fc.string({ minLength: 1 }), fc.integer(), fc.boolean(), fc.constant(null))
  fc.assert(
    fc.property(fc.uniqueArray(value, { minLength: 1, maxLength: 5 }), fc.nat(), (values, nth) => {
      const [field] = inputFields({ properties: { one: { enum: values } } })!
      const chosen = field!.choices[nth % values.length]!.value
      expect(bodyFrom([{ name: 'input.one', value: chosen, as: field!.as }])).toEqual({
        input: { one: values[nth % values.length] },
      })
    }),
  )
})
