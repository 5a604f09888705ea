import { Cli, Command, Option } from 'clipanion'
import { expect, it } from 'vitest'
import { commandTree } from './command-tree.ts'

class Put extends Command {
  static override paths = [['box', 'put']]
  static override usage = Command.Usage({ description: 'Put `it` in.' })
  name = Option.String('-n,--name', { required: true, description: 'What it is called.' })
  quiet = Option.Boolean('--quiet', false, { description: 'Say nothing.' })
  execute = async () => 0
}
class Box extends Command {
  static override paths = [['box']]
  static override usage = Command.Usage({ description: 'Show the box.' })
  execute = async () => 0
}
class Hidden extends Command {
  static override paths = [['hidden']]
  execute = async () => 0
}

it('knows each place of a program from what is registered, and nothing that is not shown', () => {
  const cli = new Cli({ binaryName: 'my-program' })
  for (const command of [Put, Box, Hidden]) cli.register(command)
  const help = { names: ['--help'], takesValue: false, about: 'Explain this command.' }
  expect(commandTree('my-program', cli.definitions())).toEqual([
    {
      at: '',
      words: [{ word: 'box', about: 'Show the box.' }],
      options: [help, { names: ['--version'], takesValue: false, about: 'Say the version.' }],
    },
    { at: 'box', words: [{ word: 'put', about: 'Put it in.' }], options: [help] },
    {
      at: 'box put',
      words: [],
      options: [
        { names: ['-n', '--name'], takesValue: true, about: 'What it is called.' },
        { names: ['--quiet'], takesValue: false, about: 'Say nothing.' },
        help,
      ],
    },
  ])
})
