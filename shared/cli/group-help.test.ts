import { PassThrough } from 'node:stream'
import { Cli, Command, Option } from 'clipanion'
import { expect, it } from 'vitest'
import { groupHelp, withoutPlaces } from './group-help.ts'

class One extends Command {
  static override paths = [['keys', 'one']]
  static override usage = Command.Usage({ description: 'Does one.' })
  url = Option.String('--url', { description: 'Where.' })
  override execute = async () => 0
}
class Two extends Command {
  static override paths = [['keys', 'rotate-two']]
  static override usage = Command.Usage({ description: 'Does two.' })
  override execute = async () => 0
}
const cli = new Cli({ binaryName: 'runtime' })
cli.register(One)
cli.register(Two)

it('explains words that begin commands, and leaves commands to explain themselves', () => {
  const help = (...argv: string[]) => groupHelp('runtime', argv, cli.definitions())
  expect(help('keys', '--help')).toBe(
    '  runtime keys one         Does one.\n  runtime keys rotate-two  Does two.\n\n--help behind any of them says more.\n',
  )
  expect([help('keys', 'one', '--help'), help('--help'), help('nothing', '--help'), help('keys')]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})

it('shows no places of values', async () => {
  const stdout = new PassThrough()
  await cli.run(['keys', 'one', '--help'], { ...Cli.defaultContext, stdout, colorDepth: 1 })
  const help = withoutPlaces(String(stdout.read()))
  expect(help).toContain('--url …')
  expect(help).not.toContain('#0')
})
