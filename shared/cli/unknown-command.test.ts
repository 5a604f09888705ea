import { expect, it } from 'vitest'
import { unknownCommand } from './unknown-command.ts'

const definitions = ['runtime', 'runtime agents list', 'runtime agents apply', 'runtime run', 'runtime verify'].map(
  path => ({
    path,
    usage: path,
    options: [],
  }),
)
const said = (...argv: string[]) => unknownCommand('runtime', argv, definitions)

it('names the command that was meant, or those that begin alike', () => {
  expect(said('agnets', 'list')).toBe('runtime has no command "agnets": did you mean "runtime agents list"?\n')
  expect(said('agents', 'lst')).toBe('runtime has no command "agents lst": did you mean "runtime agents list"?\n')
  expect(said('agents')).toBe(
    'runtime has no command "agents": there are "runtime agents list", "runtime agents apply"\n',
  )
  expect(said('verfy', 'a.json')).toBe('runtime has no command "verfy": did you mean "runtime verify"?\n')
  expect(said('somersault')).toBe('runtime has no command "somersault": "runtime --help" lists them all\n')
})

it('has nothing to say of a command, of options alone, and of nothing', () => {
  for (const argv of [['run', 'hello'], ['agents', 'list', '--url', 'x'], ['--help'], []])
    expect(said(...argv)).toBeUndefined()
})
