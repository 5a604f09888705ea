import { expect, it } from 'vitest'
import { relativeTime } from './times.ts'

const HOUR = 3_600_000

it('counts one in the singular, however long ago', () => {
  for (let hours = 1; hours < 24 * 1200; hours++)
    expect(relativeTime(0, hours * HOUR)).not.toMatch(/^1\s(?:days|months|years) /)
})
