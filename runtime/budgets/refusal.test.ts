import { expect, it } from 'vitest'
import { fromWords, inWords, onWire } from './refusal.ts'

it.each([
  { dimension: 'runsPerDay', limit: 3, used: 3 },
  { dimension: 'tokensPerDay', limit: 263, used: 0 },
  { dimension: 'costPerDay', limit: 1_250_000_000, used: 7 },
  { dimension: 'costPerRun', limit: 100, used: 99 },
  { dimension: 'runsPerDay', limit: 1, used: 1 },
] as const)('a refusal can be read back from its words: $dimension', refusal => {
  expect(fromWords(inWords('a-worker', refusal))).toEqual(onWire(refusal))
})

it('one run is counted in the singular', () => {
  expect(inWords('clerk', { dimension: 'runsPerDay', limit: 1, used: 1 })).toBe(
    'the budget of clerk is 1 run a day (maxRunsPerDay), of which 1 is used or reserved',
  )
})

it('other words are no refusal', () => {
  expect(fromWords('the budget is spent')).toBeUndefined()
})
