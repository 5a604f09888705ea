import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { monogramOf } from './pages/connectors.ts'

const services = readdirSync(new URL('../connectors/catalogue/', import.meta.url)).map(file => file.replace('.ts', ''))

describe('a monogram', () => {
  it('has the first letters of two words, or two of one', () => {
    const letters = ['Google Calendar', 'slack', 'élan', '日本語', '…'].map(name => monogramOf(name).letters)
    expect(letters).toEqual(['GC', 'SL', 'ÉL', '日本', '?'])
  })

  it('tells the services of the catalogue apart', () => {
    const marks = services.map(name => JSON.stringify(monogramOf(name)))
    expect(services.length).toBeGreaterThan(10)
    expect(new Set(marks).size).toBe(marks.length)
  })
})
