import { PassThrough } from 'node:stream'
import { Cli } from 'clipanion'
import { expect, it } from 'vitest'
import { SchedulesPreviewCommand } from './schedules.ts'

async function preview(args: string[], env: Record<string, string> = {}) {
  const cli = new Cli({ binaryName: 'runtime' })
  cli.register(SchedulesPreviewCommand)
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const code = await cli.run(['schedules', 'preview', ...args], {
    env,
    stdin: new PassThrough(),
    stdout,
    stderr,
    colorDepth: 1,
  })
  return { code, out: String(stdout.read() ?? '') }
}

it('prints when an expression fires, in the zone that is given or the default one', async () => {
  const args = ['30 2 * * *', '--from', '2026-10-24T22:00:00Z', '--count', '2']
  const lines =
    '2026-10-25T00:30:00.000Z  2026-10-25T02:30:00+02:00\n2026-10-26T01:30:00.000Z  2026-10-26T02:30:00+01:00\n'
  expect(await preview([...args, '--timezone', 'Europe/Berlin'])).toEqual({ code: 0, out: lines })
  expect(await preview(args, { PLATFORM_DEFAULT_TIMEZONE: 'Europe/Berlin' })).toEqual({ code: 0, out: lines })
  expect((await preview(args)).out).toContain('2026-10-25T02:30:00.000Z  2026-10-25T02:30:00+00:00\n')
})

it.each([
  [['soon'], /expected a cron expression/],
  [['* * * * *', '--timezone', 'Mars'], /'Mars' is no IANA time zone/],
  [['* * * * *', '--count', '51'], /--count: expected 1 to 50/],
  [['* * * * *', '--from', 'soon'], /--from: expected a time/],
])('says in one line what is wrong: %j', async (args, message) => {
  const { code, out } = await preview(args)
  expect([code, out]).toEqual([1, expect.stringMatching(message)])
})
