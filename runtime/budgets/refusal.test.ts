import { expect, it } from 'vitest'
import { fromWords, inWords, onWire } from './refusal.ts'

it.each([
  { dimension: 'runsPerDay', limit: 3, used: 3 },
  { dimension: 'tokensPerDay', limit: 263, used: 0 },
  { dimension: 'costPerDay', limit: 1_250_000_000, used: 7 },
  { dimension: 'costPerRun', limit: 100, used: 99 },
] as const)('a refusal can be read back from its words: $dimension', refusal => {
  expect(fromWords(inWords('a-worker', refusal))).toEqual(onWire(refusal))
})

it('other words are no refusal', () => {
  expect(fromWords('the budget is spent')).toBeUndefined()
})
