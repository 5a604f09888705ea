import { stripVTControlCharacters } from 'node:util'
import { Cli, Command, Option } from 'clipanion'
import { describe, expect, it } from 'vitest'
import { commandHelp, groupHelp, programHelp } from './help.ts'
import { usageProblem } from './program.ts'
import { style } from './style.ts'

class KeysMake extends Command {
  static override paths = [['keys', 'make']]
  static override usage = Command.Usage({
    description: 'Make a key.',
    details: 'Ask `$0 keys list` for those that there are.',
    examples: [['One for a month', '$0 keys make laptop --until 2026-12-31']],
  })
  name = Option.String({ name: 'name' })
  until = Option.String('--until', { description: 'When it ends.' })
  tenant = Option.String('-t,--tenant', { required: true, description: 'Whose it is. '.repeat(9) })
  json = Option.Boolean('--json', false, { description: 'As JSON.' })
  override execute = async () => 0
}
class KeysList extends Command {
  static override paths = [['keys', 'list']]
  static override usage = Command.Usage({ description: 'List keys.' })
  override execute = async () => 0
}
class Run extends Command {
  static override paths = [['run']]
  static override usage = Command.Usage({ description: 'Run.' })
  override execute = async () => 0
}
const cli = new Cli({ binaryName: 'runtime' })
for (const command of [KeysMake, KeysList, Run]) cli.register(command)
const definitions = cli.definitions()
const make = definitions.find(({ path }) => path === 'runtime keys make')!

describe('help', () => {
  it('of a program lists its commands by group, in the order of their use', () => {
    const words = {
      name: 'runtime',
      about: 'Runs agents.',
      groups: [['Start', ['run']] as const, ['Keys', ['keys make', 'keys list']] as const],
      exits: {},
    }
    expect(programHelp(words, definitions, style(false))).toBe(
      [
        'Runs agents.\n',
        'Start\n  run        Run.\n',
        'Keys\n  keys make  Make a key.\n  keys list  List keys.\n',
        'runtime help <command> explains one, with its options and examples.\n',
      ].join('\n'),
    )
  })

  it('of a command names the values, keeps to a readable width, and tells the exit codes', () => {
    const help = commandHelp(make, { 'keys make': { 0: 'it is made' } }, 'runtime', style(false))
    expect(help).toContain('Usage\n  runtime keys make <name> -t,--tenant <tenant> [options]\n')
    expect(help).toContain('Ask `runtime keys list` for those that there are.')
    expect(help).toContain('  --until <until>       When it ends.\n')
    expect(help).toContain('  # One for a month\n  runtime keys make laptop --until 2026-12-31\n')
    expect(help).toMatch(/Exit codes\n {2}0 {4}it is made\n {2}1 {4}refused/)
    expect(Math.max(...help.split('\n').map(line => line.length))).toBeLessThanOrEqual(104)
    expect(help).not.toMatch(/#\d|\$0/)
  })

  it('of words that only begin commands lists those, and there is none for others', () => {
    const help = (...words: string[]) => groupHelp('runtime', words, definitions)
    expect(help('keys')).toBe('  runtime keys make  Make a key.\n  runtime keys list  List keys.\n')
    expect([help('run'), help('nothing')]).toEqual([undefined, undefined])
  })

  it('is marked on a terminal alone', () => {
    const marked = commandHelp(make, {}, 'runtime', style(true))
    expect(marked).toContain('\u001b[1mUsage\u001b[22m')
    expect(stripVTControlCharacters(marked)).toBe(commandHelp(make, {}, 'runtime', style(false)))
  })
})

describe('a command line that does not read', () => {
  const said = (...argv: string[]) => usageProblem('runtime', argv, definitions)
  it.each([
    [['kesy', 'list'], 'runtime has no command "kesy": did you mean "runtime keys list"?\n'],
    [['keys', 'lst'], 'runtime has no command "keys lst": did you mean "runtime keys list"?\n'],
    [['keys'], 'runtime has no command "keys": there are "runtime keys make", "runtime keys list"\n'],
    [['somersault'], 'runtime has no command "somersault": "runtime help" lists them all\n'],
    [['keys', 'make', 'a', '--jsn'], 'runtime keys make has no option --jsn: did you mean --json?\n'],
    [['keys', 'list', '--colour'], 'runtime keys list has no option --colour: add --help to see what it takes\n'],
    [['keys', 'make', 'a', '--until'], 'runtime keys make needs a value behind --until\n'],
    [
      ['keys', 'make', '--until', 'x'],
      'runtime keys make needs <name>. Usage: runtime keys make <name> -t,--tenant <tenant> [options]\n',
    ],
    [
      ['keys', 'make', 'a'],
      'runtime keys make needs -t. Usage: runtime keys make <name> -t,--tenant <tenant> [options]\n',
    ],
    [
      ['keys', 'make', 'a', 'b', '--tenant=x'],
      'runtime keys make does not take "b". Usage: runtime keys make <name> -t,--tenant <tenant> [options]\n',
    ],
    [['run', 'too', 'much'], 'runtime run does not take "too". Usage: runtime run\n'],
  ])('%j is answered with what to type', (argv, wanted) => {
    expect(said(...argv)).toBe(wanted)
  })
})
