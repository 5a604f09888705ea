import { expect, it } from 'vitest'
import { dayIn } from '../runtime/budgets/day.ts'
import { noonZone } from './noon-zone.ts'

it('no day ends within the eleven hours after it, whatever the hour', () => {
  for (let hour = 0; hour < 24; hour++) {
    const now = Date.UTC(2026, 10, 27, hour, 59, 59)
    const dayOf = dayIn(noonZone(new Date(now)))
    expect(dayOf(now + 11 * 3_600_000), String(hour)).toBe(dayOf(now))
  }
})
