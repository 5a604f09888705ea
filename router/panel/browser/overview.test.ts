import { expect, it } from 'vitest'
import { percent, usd } from '../../../shared/browser/figures.ts'
import { everyDay } from './savings-chart.ts'

it('shows money to the nano where it is little, and an unknown price as unknown', () => {
  const shown = [null, 0, 0.0023, 1e-9, -0.5, 1234.5678, 12.5].map(usd)
  expect(shown).toEqual(['unknown', '$0.00', '$0.0023', '$0.000000001', '−$0.50', '$1,234.57', '$12.50'])
})

it('says a part of a whole as it is: nearly all is not all, and a little is not nothing', () => {
  const shown = [0, 0.0004, 0.0996, 0.2, 0.9949, 0.9996, 1, -0.9996, -0.0004, 1.5].map(part => percent(part))
  expect(shown.map(words => words.replace('\u00a0', ' '))).toEqual(
    ['0', '<0.1', '10.0', '20', '99', '99.9', '100', '-99.9', '-<0.1', '150'].map(words => `${words} %`),
  )
  // One of five failed: 1 - 0.8 is a little less than 0.2.
  const precise = [1 - 0.8, 0.9, 0.9996, 1].map(part => percent(part, 1))
  expect(precise).toEqual(['20.0\u00a0%', '90.0\u00a0%', '99.9\u00a0%', '100\u00a0%'])
})

it('gives a day without a call its place between the others, and the last year at most', () => {
  const day = (key: string) => ({ key, requests: 1, savings_usd: 1, spent_usd: 1 })
  const days = everyDay([day('2026-02-27'), day('2026-03-02')])
  expect(days.map(({ key, requests }) => [key, requests])).toEqual([
    ['2026-02-27', 1],
    ['2026-02-28', 0],
    ['2026-03-01', 0],
    ['2026-03-02', 1],
  ])
  expect(everyDay([day('2020-01-01'), day('2026-03-02')])).toHaveLength(366)
  expect(everyDay([])).toEqual([])
})
