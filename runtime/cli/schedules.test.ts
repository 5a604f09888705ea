import { expect, it } from 'vitest'
import { typed } from '../../shared/cli/testing/typed.ts'
import { runtimeProgram } from './commands.ts'

const preview = (args: string[], env: Record<string, string> = {}) =>
  typed(runtimeProgram, ['schedules', 'preview', ...args], { env })

it('prints when an expression fires, in the zone that is given or the default one', async () => {
  const args = ['30 2 * * *', '--from', '2026-10-24T22:00:00Z', '--count', '2']
  const lines =
    '2026-10-25T00:30:00.000Z  2026-10-25T02:30:00+02:00\n2026-10-26T01:30:00.000Z  2026-10-26T02:30:00+01:00\n'
  expect(await preview([...args, '--timezone', 'Europe/Berlin'])).toEqual({ code: 0, out: lines, err: '' })
  expect(await preview(args, { PLATFORM_DEFAULT_TIMEZONE: 'Europe/Berlin' })).toEqual({ code: 0, out: lines, err: '' })
  expect((await preview(args)).out).toContain('2026-10-25T02:30:00.000Z  2026-10-25T02:30:00+00:00\n')
})

it.each([
  [['soon'], /expected a cron expression/],
  [['* * * * *', '--timezone', 'Mars'], /'Mars' is no IANA time zone/],
  [['* * * * *', '--count', '51'], /--count: expected 1 to 50/],
  [['* * * * *', '--from', 'soon'], /--from: expected a time/],
  [['* * * * *', '--from', '2026-02-30'], /--from: expected a time/],
])('says in one line what is wrong: %j', async (args, message) => {
  const { code, err } = await preview(args)
  expect([code, err]).toEqual([2, expect.stringMatching(message)])
})
